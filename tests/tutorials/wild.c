/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bug of docs/tutorials/wild-write.rst: a kernel module frees an object,
 * goes on writing to it, and crashes when another has moved into its place.
 *
 * Commands, written to /proc/wild: "probe" starts a probe, "stop" ends it,
 * "viewer" makes a viewer; reading /proc/wild asks the viewer.
 */
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

struct probe {
    char name[16];
    unsigned long count;
    unsigned long stamp;
};

struct viewer {
    char name[24];
    const struct viewer_ops *ops;
};

struct viewer_ops {
    void (*show)(struct seq_file *out, struct viewer *viewer);
};

/* One pool for both: they have the same size. As it has a constructor, the kernel shares it
 * with nobody, and keeps nothing of its own in a free object: the wild write hits a viewer,
 * and nothing else. */
static struct kmem_cache *pool;
static struct probe *probe;
static struct viewer *viewer;

static void construct(void *object)
{
    memset(object, 0, sizeof(struct viewer));
}

static void tick(struct work_struct *work);
static DECLARE_DELAYED_WORK(ticker, tick);

static noinline void probe_update(struct probe *p)
{
    p->count++;
    p->stamp = jiffies;         /* the bug shows here: p may be free */
}

static void tick(struct work_struct *work)
{
    if (probe) {
        probe_update(probe);
    }
    schedule_delayed_work(&ticker, HZ);
}

static noinline int probe_start(void)
{
    probe = kmem_cache_alloc(pool, GFP_KERNEL);
    return probe ? 0 : -ENOMEM;
}

/* The bug is here: who sets "probe" to NULL? */
static noinline void probe_stop(void)
{
    kmem_cache_free(pool, probe);
}

static void show_name(struct seq_file *out, struct viewer *v)
{
    seq_printf(out, "viewer %s\n", v->name);
}

static const struct viewer_ops plain_ops = { .show = show_name };

static noinline int viewer_make(void)
{
    viewer = kmem_cache_alloc(pool, GFP_KERNEL);
    if (!viewer) {
        return -ENOMEM;
    }
    strscpy(viewer->name, "plain", sizeof(viewer->name));
    viewer->ops = &plain_ops;
    return 0;
}

static noinline int wild_show(struct seq_file *out, void *unused)
{
    if (viewer) {
        viewer->ops->show(out, viewer);
    }
    return 0;
}

static int wild_open(struct inode *inode, struct file *file)
{
    return single_open(file, wild_show, NULL);
}

static ssize_t wild_write(struct file *file, const char __user *text,
                          size_t bytes, loff_t *offset)
{
    char word[8] = { 0 };
    int error = 0;

    if (copy_from_user(word, text, min(bytes, sizeof(word) - 1))) {
        return -EFAULT;
    }
    switch (word[0]) {
    case 'p':
        error = probe_start();
        break;
    case 's':
        probe_stop();
        break;
    case 'v':
        error = viewer_make();
        break;
    }
    return error ? error : bytes;
}

static const struct proc_ops wild_ops = {
    .proc_open = wild_open,
    .proc_read = seq_read,
    .proc_lseek = seq_lseek,
    .proc_release = single_release,
    .proc_write = wild_write,
};

static int __init wild_init(void)
{
    BUILD_BUG_ON(sizeof(struct probe) != sizeof(struct viewer));
    pool = kmem_cache_create("wild", sizeof(struct viewer), 0, 0, construct);
    if (!pool || !proc_create("wild", 0600, NULL, &wild_ops)) {
        return -ENOMEM;
    }
    schedule_delayed_work(&ticker, HZ);
    return 0;
}

module_init(wild_init);
MODULE_DESCRIPTION("A bug to be found by going backwards");
MODULE_LICENSE("GPL");
