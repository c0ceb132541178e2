/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checkpoint state: what is encoded is decoded; anything cut or flipped in the
 * head is refused or stays within the bytes. */
#include "run/tt-cpstate.h"

#include <glib.h>

static const uint8_t map[] = "memory map of some sections", cpu[] = "registers",
    blocks[] = "pc.ram", full[] = "devices", paging[] = "page tables";

static TtCpState sample(bool is_full, bool has_paging)
{
    return (TtCpState) {
        .segment = 77, .index = 5, .halted = true, .n_blocks = 9,
        .output_hash = 0x123456789abcdef0, .events = 1234567890123,
        .map = { { map, sizeof(map) }, { NULL, 0 } },
        .blocks = { blocks, sizeof(blocks) },
        .cpu = { cpu, sizeof(cpu) },
        .full = { full, is_full ? sizeof(full) : 0 },
        .paging = { paging, has_paging ? sizeof(paging) : 0 },
    };
}

static void assert_bytes(TtBytes seen, TtBytes wanted)
{
    g_assert_cmpmem(seen.data, seen.len, wanted.data, wanted.len);
}

static void round_trip(bool is_full, bool has_paging)
{
    TtCpState in = sample(is_full, has_paging), out;
    TtDiag diag;
    uint32_t len;
    g_autofree uint8_t *bytes = tt_cpstate_encode(&in, &len);

    g_assert_cmpint(tt_cpstate_decode((TtBytes) { bytes, len }, &out, &diag),
                    ==, TT_OK);
    g_assert_cmpuint(out.segment, ==, in.segment);
    g_assert_cmpuint(out.index, ==, in.index);
    g_assert_true(out.halted);
    g_assert_cmpuint(out.n_blocks, ==, in.n_blocks);
    g_assert_cmpuint(out.output_hash, ==, in.output_hash);
    g_assert_cmpuint(out.events, ==, in.events);
    assert_bytes(out.map[0], in.map[0]);
    assert_bytes(out.map[1], in.map[1]);
    assert_bytes(out.blocks, in.blocks);
    assert_bytes(out.cpu, in.cpu);
    assert_bytes(out.full, in.full);
    assert_bytes(out.paging, in.paging);
    g_assert_cmpuint(bytes[4], ==, has_paging ? 3 : is_full ? 2 : 1);
}

static void test_round_trip(void)
{
    round_trip(false, false);
    round_trip(true, false);
    round_trip(false, true);
    round_trip(true, true);
}

/* Every cut is refused; the copy is exactly as long, so that a sanitizer or
 * valgrind sees a read after it. */
static void test_cut(void)
{
    TtCpState in = sample(true, false), out;
    uint32_t len;
    g_autofree uint8_t *bytes = tt_cpstate_encode(&in, &len);

    for (uint32_t n = 0; n < len; n++) {
        g_autofree uint8_t *cut = g_memdup2(bytes, n);
        TtDiag diag;

        g_assert_cmpint(tt_cpstate_decode((TtBytes) { cut, n }, &out, &diag),
                        ==, TT_ERR_FORMAT);
        g_assert_true(strstr(diag.text, "damaged"));
    }
}

static void test_flipped(void)
{
    TtCpState in = sample(true, false), out;
    uint32_t len;
    g_autofree uint8_t *bytes = tt_cpstate_encode(&in, &len);

    for (uint32_t bit = 0; bit < len * 8; bit++) {
        TtDiag diag;
        TtStatus s;

        bytes[bit / 8] ^= 1 << bit % 8;
        s = tt_cpstate_decode((TtBytes) { bytes, len }, &out, &diag);
        if (s == TT_OK) {
            const uint8_t *end = bytes + len;

            g_assert_true(out.full.data + out.full.len == end);
            g_assert_true(out.map[0].data + out.map[0].len <= end);
        } else {
            g_assert_true(s == (bit >= 32 && bit < 64 ? TT_ERR_VERSION :
                                TT_ERR_FORMAT));
        }
        bytes[bit / 8] ^= 1 << bit % 8;
    }
}

/* A list of two blocks; each cut of it ends in a refusal, not beyond it. */
static void test_blocks(void)
{
    static const char names[2][8] = { "pc.ram", "vga" };
    g_autoptr(GByteArray) list = g_byte_array_new();
    TtCpBlock b;

    for (unsigned i = 0; i < 2; i++) {
        uint8_t head[16];

        tt_put_le64(head, 4096 << i);
        tt_put_le32(head + 8, i);
        tt_put_le32(head + 12, strlen(names[i]));
        g_byte_array_append(list, head, sizeof(head));
        g_byte_array_append(list, (const uint8_t *)names[i], strlen(names[i]));
    }
    for (unsigned len = 0; len <= list->len; len++) {
        g_autofree uint8_t *cut = g_memdup2(list->data, len);
        TtBytes rest = { cut, len };
        unsigned n = 0;

        while (tt_cpstate_next_block(&rest, &b)) {
            g_assert_cmpuint(b.size_bytes, ==, 4096 << n);
            g_assert_cmpuint(b.flags, ==, n);
            g_assert_cmpmem(b.name.data, b.name.len, names[n],
                            strlen(names[n]));
            n++;
        }
        g_assert_cmpuint(n, ==, len == list->len ? 2 : len >= 22 ? 1 : 0);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cpstate/round-trip", test_round_trip);
    g_test_add_func("/cpstate/cut", test_cut);
    g_test_add_func("/cpstate/flipped", test_flipped);
    g_test_add_func("/cpstate/blocks", test_blocks);
    return g_test_run();
}
