/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Conditions with a program's names and types, as C has them, become conditions of numbers,
 * registers and memory (tt-cond.h): what a member is becomes an address and a read of fixed
 * width. So only who holds the program's debug information need know of it.
 *
 *   task->pid == 7       *(s32 *)(*(u64 *)0x1000UL + 0x8UL) == 7
 *
 * Context: any thread. The text and the types may be hostile: depth and length are bounded,
 * and types that contain themselves end a search for a member. Internal API.
 */
#ifndef TT_LOWER_H
#define TT_LOWER_H

#include "io/tt-base.h"

/* A type of the table's; 0: void. */
typedef uint32_t TtTypeId;

typedef enum TtTypeKind {
    TT_TYPE_VOID,
    TT_TYPE_NUMBER,             /* integers, characters, enumerations */
    TT_TYPE_POINTER,
    TT_TYPE_ARRAY,
    TT_TYPE_MEMBERS,            /* struct, union, class */
    TT_TYPE_FUNCTION,
    TT_TYPE_OTHER,              /* floating point and the like: no condition of it */
} TtTypeKind;

typedef struct TtTypeInfo {
    TtTypeKind kind;
    uint64_t bytes;             /* 0: not known */
    bool is_signed, is_bool;
    bool is_reference;          /* C++'s: a pointer that is followed by itself */
    bool is_declared;           /* of MEMBERS nobody knows which */
    bool is_several;            /* and so because there are several of that name */
    TtTypeId to;                /* of a pointer, an array: of what */
    char name[64];              /* for people; may have anything in it */
} TtTypeInfo;

typedef struct TtTypeMember {
    const char *name;           /* the table's; NULL: its members are the struct's */
    TtTypeId type;
    uint64_t first_bit;         /* from the beginning of the struct */
    unsigned bits;              /* of a bit-field; 0: it is none */
    bool is_base;               /* C++'s base class: its members come after the own ones */
    bool has_no_place;          /* a static member, or a virtual base class */
} TtTypeMember;

typedef enum TtNameKind {
    TT_NAME_DATA,               /* a variable: address and type */
    TT_NAME_ADDRESS,            /* an address of something, without a type */
    TT_NAME_CODE,               /* a function: an address */
    TT_NAME_NUMBER,             /* a constant, with a type, or of int's */
} TtNameKind;

typedef struct TtNameInfo {
    TtNameKind kind;
    uint64_t value;             /* address, or number, extended to 64 bits */
    TtTypeId type;              /* 0: see above */
    bool is_per_cpu;            /* @value is an offset: each CPU has one of its own */
    const char *lost;           /* the missing file that has the type; or NULL */
} TtNameInfo;

typedef enum TtTypeTag {
    TT_TAG_STRUCT, TT_TAG_UNION, TT_TAG_ENUM, TT_TAG_NAMED  /* typedef, or a basic one */
} TtTypeTag;

typedef struct TtTypes {
    void *opaque;
    void (*describe)(void *opaque, TtTypeId type, TtTypeInfo *info);
    /* False: it has no more than @n. */
    bool (*member)(void *opaque, TtTypeId type, unsigned n, TtTypeMember *member);
    /* 0: there is none; or not one only, then @why says so. @name has @len bytes. */
    TtTypeId (*find)(void *opaque, TtTypeTag tag, const char *name, size_t len,
                     TtDiag *why);
    /* False: @why says what is wrong with it. */
    bool (*name)(void *opaque, const char *name, size_t len, TtNameInfo *info,
                 TtDiag *why);
} TtTypes;

/*
 * tt_lower: @text for tt_cond_parse
 * *@out: g_free. TT_ERR_FORMAT: a name is unknown, or @text is no condition; TT_ERR_LIMIT.
 */
TtStatus tt_lower(const char *text, const TtTypes *types, char **out, TtDiag *diag);
/* Likewise of what lies in memory: a read of it; of a bit-field, of the bytes that have it. */
TtStatus tt_lower_place(const char *text, const TtTypes *types, char **out, TtDiag *diag);

#endif
