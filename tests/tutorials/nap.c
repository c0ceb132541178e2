/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bug of docs/tutorials/asleep-in-an-interrupt.rst: a driver whose interrupt handler
 * sleeps, because of one answer of its device.
 *
 * The device is QEMU's `edu`, or one like it: it works out factorials. A number that is
 * written to /proc/nap goes to it; the result comes with an interrupt.
 */
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/proc_fs.h>

enum { FACTORIAL = 0x08, STATUS = 0x20, PENDING = 0x24, ACK = 0x64, SIGNAL = 0x80 };

static struct nap {
    u8 __iomem *regs;
    u32 asked;
    u32 result;
    u32 count;
} nap;

/* A result of 0 cannot be: the device has not put it there yet. */
static noinline void nap_fetch(void)
{
    nap.result = readl(nap.regs + FACTORIAL);
    while (!nap.result) {
        msleep(1);              /* the bug shows here: no process may sleep */
        nap.result = readl(nap.regs + FACTORIAL);
    }
}

static irqreturn_t nap_interrupt(int irq, void *unused)
{
    u32 pending = readl(nap.regs + PENDING);

    if (!pending) {
        return IRQ_NONE;
    }
    writel(pending, nap.regs + ACK);
    nap_fetch();
    nap.count++;
    return IRQ_HANDLED;
}

static ssize_t nap_write(struct file *file, const char __user *text, size_t bytes,
                         loff_t *offset)
{
    u32 number;
    int error = kstrtou32_from_user(text, bytes, 0, &number);

    if (error) {
        return error;
    }
    nap.asked = number;
    writel(number, nap.regs + FACTORIAL);
    return bytes;
}

static const struct proc_ops nap_ops = { .proc_write = nap_write };

static int __init nap_init(void)
{
    struct pci_dev *dev = pci_get_device(0x1234, 0x11e8, NULL);
    int error;

    if (!dev) {
        return -ENODEV;
    }
    error = pci_enable_device(dev);
    if (error) {
        return error;
    }
    nap.regs = pci_iomap(dev, 0, 0);
    if (!nap.regs) {
        return -ENOMEM;
    }
    error = request_irq(dev->irq, nap_interrupt, IRQF_SHARED, "nap", &nap);
    if (error) {
        return error;
    }
    writel(SIGNAL, nap.regs + STATUS);
    return proc_create("nap", 0200, NULL, &nap_ops) ? 0 : -ENOMEM;
}

module_init(nap_init);
MODULE_DESCRIPTION("A bug to be found by going backwards");
MODULE_LICENSE("GPL");
