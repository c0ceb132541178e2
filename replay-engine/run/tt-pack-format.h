/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where things are in a pack: docs/reference/pack-format.rst. */
#ifndef TT_PACK_FORMAT_H
#define TT_PACK_FORMAT_H

#define HEAD_MAGIC          "TTVMRUN\n"
#define HEAD_BYTES          64u
#define HEAD_BYTES_MAX      4096u
enum { HEAD_LENGTH = 8, HEAD_MUST_KNOW = 16, HEAD_UUID = 40, HEAD_SUM = 56 };

#define MEMBER_MAGIC        "TTVMMEM\n"
#define MEMBER_BYTES        64u
#define MEMBER_BYTES_MAX    4096u
enum {
    MEMBER_LENGTH = 8, MEMBER_FLAGS = 12, MEMBER_SEQ = 16, MEMBER_DATA = 24,
    MEMBER_NAME = 32, MEMBER_NAME_SUM = 40, MEMBER_SUM = 56,
};
#define MEMBER_END          1u
#define MEMBER_MUST_KNOW    0xfffeu

#endif
