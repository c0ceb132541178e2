/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs a fuzz target without a fuzzer: on each file of the corpora, on nothing,
 * and on mutations of those files, the same ones for the same seed.
 *
 *   fuzz-NAME [--seed N] [--mutations N] FILE-OR-DIRECTORY...
 *
 * A finding ends in a crash; the input is then in the file named on stderr.
 */
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
#include <glib.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_BYTES_MAX (64u << 10)

typedef struct Driver {
    GPtrArray *inputs;          /* GByteArray */
    GRand *rand;
} Driver;

/* The input that runs now, for the signal handler. */
static const uint8_t *now_data;
static size_t now_len;
static char *evidence;

static void keep_input(int sig)
{
    int fd = open(evidence, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (fd < 0 || write(fd, now_data, now_len) != (ssize_t)now_len) {
        static const char text[] = "cannot keep the input\n";
        if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0) {
            _exit(1);
        }
    }
    raise(sig);                 /* SA_RESETHAND: the default this time */
}

static void keep_input_on_crash(void)
{
    static const int signals[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL,
                                   SIGTERM };
    struct sigaction sa = { .sa_handler = keep_input,
                            .sa_flags = SA_RESETHAND | SA_NODEFER };

    for (unsigned i = 0; i < G_N_ELEMENTS(signals); i++) {
        sigaction(signals[i], &sa, NULL);
    }
}

static void run(const GByteArray *input)
{
    now_data = input->data;
    now_len = input->len;
    LLVMFuzzerTestOneInput(input->data, input->len);
}

static void add_file(Driver *d, const char *path)
{
    char *bytes;
    gsize len;

    if (!g_file_get_contents(path, &bytes, &len, NULL)) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(2);
    }
    g_ptr_array_add(d->inputs, g_byte_array_new_take((guint8 *)bytes, len));
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_directory(Driver *d, const char *path)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    GDir *dir = g_dir_open(path, 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        g_ptr_array_add(names, g_build_filename(path, name, NULL));
    }
    g_ptr_array_sort(names, by_name);
    for (unsigned i = 0; i < names->len; i++) {
        add_file(d, names->pdata[i]);
    }
    g_ptr_array_unref(names);
    if (dir) {
        g_dir_close(dir);
    }
}

/* ---- mutations ---- */

static uint32_t below(Driver *d, uint32_t n)
{
    return n ? g_rand_int(d->rand) % n : 0;
}

static void overwrite(Driver *d, GByteArray *b)
{
    static const uint64_t magic[] = { 0, 1, 0x7f, 0x80, 0xff, 0x8000, 0xffff,
                                      INT32_MAX, UINT32_MAX, INT64_MAX,
                                      UINT64_MAX };
    uint64_t v = magic[below(d, G_N_ELEMENTS(magic))];
    uint32_t at = below(d, b->len), width = 1u << below(d, 4);

    memcpy(b->data + at, &v, MIN(width, b->len - at));
}

static void splice(Driver *d, GByteArray *b)
{
    const GByteArray *other = d->inputs->pdata[below(d, d->inputs->len)];
    uint32_t from = below(d, other->len), at = below(d, b->len);
    uint32_t n = below(d, MIN(other->len - from, 200) + 1);

    for (uint32_t i = 0; i < n && at + i < b->len; i++) {
        b->data[at + i] = other->data[from + i];
    }
}

static void resize(Driver *d, GByteArray *b)
{
    uint32_t at = below(d, b->len), n = below(d, 20);

    if (below(d, 2)) {
        g_byte_array_remove_range(b, at, MIN(n, b->len - at));
    } else {
        uint32_t old = b->len;
        g_byte_array_set_size(b, old + n);
        memmove(b->data + at + n, b->data + at, old - at);
        for (uint32_t i = 0; i < n; i++) {
            b->data[at + i] = g_rand_int(d->rand);
        }
    }
}

static void mutate(Driver *d, GByteArray *b)
{
    if (b->len == 0) {
        g_byte_array_set_size(b, 1 + below(d, 300));
        for (uint32_t i = 0; i < b->len; i++) {
            b->data[i] = g_rand_int(d->rand);
        }
    }
    switch (below(d, 5)) {
    case 0:
        b->data[below(d, b->len)] ^= 1 << below(d, 8);
        break;
    case 1:
        b->data[below(d, b->len)] = g_rand_int(d->rand);
        break;
    case 2:
        overwrite(d, b);
        break;
    case 3:
        splice(d, b);
        break;
    case 4:
        resize(d, b);
        break;
    }
}

static void run_mutations(Driver *d, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const GByteArray *from = d->inputs->pdata[below(d, d->inputs->len)];
        GByteArray *b = g_byte_array_new();
        if (from->len) {
            g_byte_array_append(b, from->data, MIN(from->len,
                                                   INPUT_BYTES_MAX));
        }
        for (unsigned k = 1 + below(d, 6); k > 0; k--) {
            mutate(d, b);
        }
        run(b);
        g_byte_array_unref(b);
    }
}

int main(int argc, char **argv)
{
    Driver d = { .inputs = g_ptr_array_new_with_free_func(
                     (GDestroyNotify)g_byte_array_unref) };
    unsigned mutations = 5000, seed = 1;

    g_ptr_array_add(d.inputs, g_byte_array_new());      /* nothing */
    for (int i = 1; i < argc; i++) {
        if (i + 1 < argc && strcmp(argv[i], "--seed") == 0) {
            seed = strtoul(argv[++i], NULL, 0);
        } else if (i + 1 < argc && strcmp(argv[i], "--mutations") == 0) {
            mutations = strtoul(argv[++i], NULL, 0);
        } else if (g_file_test(argv[i], G_FILE_TEST_IS_DIR)) {
            add_directory(&d, argv[i]);
        } else {
            add_file(&d, argv[i]);
        }
    }
    d.rand = g_rand_new_with_seed(seed);
    g_autofree char *base = g_path_get_basename(argv[0]);
    evidence = g_strdup_printf("%s.last-input", base);
    fprintf(stderr, "seed %u, %u inputs, %u mutations; a crash leaves its "
            "input in %s\n", seed, d.inputs->len, mutations, evidence);
    keep_input_on_crash();
    for (unsigned i = 0; i < d.inputs->len; i++) {
        run(d.inputs->pdata[i]);
    }
    run_mutations(&d, mutations);
    g_free(evidence);
    g_rand_free(d.rand);
    g_ptr_array_unref(d.inputs);
    return 0;
}
