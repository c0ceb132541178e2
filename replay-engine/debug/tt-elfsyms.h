/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of functions, and addresses of names, from the symbol table of a 64-bit
 * little-endian ELF file (a vmlinux, a program). Debug information is not read.
 *
 * Context: any thread; the table is immutable once loaded. Bytes may be hostile: a name
 * that lies outside of them is left out, and nothing is read twice. Internal API.
 */
#ifndef TT_ELFSYMS_H
#define TT_ELFSYMS_H

#include "io/tt-base.h"

#define TT_ELFSYMS_MAX (1u << 23)

typedef struct TtElfSyms TtElfSyms;

/* Is this the beginning of an ELF file? */
bool tt_elfsyms_is_elf(const uint8_t *bytes, size_t len);
/*
 * tt_elfsyms_load: the functions of @bytes, which must stay until the table is freed
 * Returns TT_OK, also when there are none; TT_ERR_FORMAT: no such file, or its
 * section table lies outside of it; TT_ERR_LIMIT.
 */
TtStatus tt_elfsyms_load(const uint8_t *bytes, size_t len, TtElfSyms **out,
                         TtDiag *diag);
size_t tt_elfsyms_count(const TtElfSyms *s);
/* The function that @addr lies in, or that ends just before it; @offset: bytes from
 * its beginning. NULL: none. The name is at most 512 bytes long. O(log n). */
const char *tt_elfsyms_find(const TtElfSyms *s, uint64_t addr,
                            uint64_t *offset);
/*
 * tt_elfsyms_address: where @name, of @len bytes, is: a function or data
 * Returns at how many addresses; several local ones may have one name, unless a global
 * one has it, too. @addr: one of them. O(symbols).
 */
size_t tt_elfsyms_address(const TtElfSyms *s, const char *name, size_t len,
                          uint64_t *addr, bool *is_code);
/* Is it a module, an object file: are addresses only offsets into sections? */
bool tt_elfsyms_is_relocatable(const TtElfSyms *s);
/* And is the one of @name an offset into .text? O(symbols). */
bool tt_elfsyms_is_text(const TtElfSyms *s, const char *name, size_t len);
/* Must it be loaded elsewhere than at its addresses? They begin at 0, as those of a shared
 * library, or a program that is position-independent. */
bool tt_elfsyms_is_floating(const TtElfSyms *s);
/* The architecture (EM_...) that the code is for; 0: it is no such file. */
unsigned tt_elfsyms_machine(const uint8_t *bytes, size_t len);
#define TT_ELFSYMS_X86_64 62u
/* How many bytes the function has that tt_elfsyms_find finds; 0: that is not known. */
uint64_t tt_elfsyms_size(const TtElfSyms *s, uint64_t addr);

/* Where the file says that its code is. */
typedef struct TtElfImage {
    uint64_t entry;             /* address of the first instruction */
    uint64_t low, high;         /* of all segments that can be executed */
} TtElfImage;

/* False: it is no such file, or has no segment that can be executed. */
bool tt_elfsyms_image(const uint8_t *bytes, size_t len, TtElfImage *image);
void tt_elfsyms_free(TtElfSyms *s);             /* NULL is fine */

#endif
