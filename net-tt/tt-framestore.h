/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The frame store of a run: the frames that it sent, in a file that other members of the
 * group can read, so that their logs need only say which frame they got. Format:
 * docs/reference/group-format.rst.
 *
 * The sender appends each frame before it sends it. So whoever got a frame finds it there,
 * also when the sender was killed. A reader trusts nothing: a frame is what the store has
 * under its number only if the hash is that of the bytes, and the one that was asked for.
 *
 * Context: any thread, one thread for each object. Blocks in TtIo.
 * Stability: on-disk format, through the document.
 */
#ifndef TT_FRAMESTORE_H
#define TT_FRAMESTORE_H

#include "io/tt-io.h"
#include "tt-frame.h"

#define TT_FRAMESTORE_HEAD_BYTES    48
#define TT_FRAMESTORE_RECORD_BYTES  32      /* before the bytes of a frame */
#define TT_FRAMESTORE_SUFFIX        ".frames"

/* ---- the sender's side ---- */

typedef struct TtFrameWriter TtFrameWriter;

/* Writes the head to the empty @io, which is owned from here on, also on failure. Returns
 * TT_OK or what @io failed with. */
TtStatus tt_framewriter_new(TtIo *io, const uint8_t run[TT_RUN_BYTES], TtFrameWriter **out,
                            TtDiag *diag);
/*
 * One append, no sync: a frame outlives the process that sent it, not its host. @f has its
 * data, its hash and a seq that is above that of the frame before (asserted).
 * After a failure the writer is poisoned: it repeats the first failure and writes nothing
 * more; the file ends in a torn tail. O(bytes).
 */
TtStatus tt_framewriter_put(TtFrameWriter *w, const TtFrame *f, TtDiag *diag);
TtStatus tt_framewriter_sync(TtFrameWriter *w, TtDiag *diag);
void tt_framewriter_free(TtFrameWriter *w);

/* ---- the reader's side: one store ---- */

typedef struct TtFrameStore TtFrameStore;

/* What the store says of a frame. */
typedef struct TtFrameEntry {
    uint64_t seq, hash;
    uint64_t offset_bytes;      /* of the frame's bytes in the file */
    uint32_t len;
} TtFrameEntry;

/* @io is owned, also on failure. TT_ERR_FORMAT: it is no store, or that of another run;
 * TT_ERR_VERSION; TT_ERR_IO. The file may grow while it is read. */
TtStatus tt_framestore_open(TtIo *io, const uint8_t run[TT_RUN_BYTES], TtFrameStore **out,
                            TtDiag *diag);
void tt_framestore_free(TtFrameStore *s);
/*
 * A store that rests has no file open and little memory; it still knows what it has passed.
 * It may only be resumed or freed. resume: with the file of the same run; @io is owned, also
 * on failure: then it rests as before, and the status is one of open, or TT_ERR_FORMAT: it
 * is shorter than it was.
 */
void tt_framestore_rest(TtFrameStore *s);
bool tt_framestore_rests(const TtFrameStore *s);
TtStatus tt_framestore_resume(TtFrameStore *s, TtIo *io, const uint8_t run[TT_RUN_BYTES],
                              TtDiag *diag);
/*
 * tt_framestore_find: where frame @seq is
 * Returns TT_OK; TT_END: the store ends before it; TT_ERR_FORMAT: it is not there, though
 * later ones are: it was never stored, or there is damage, perhaps so much that what is
 * behind it is not looked for; TT_ERR_IO.
 * Cost: one small read for each frame that was not passed before; later 16 at most. Damage
 * is read once, and 64 MB of it at most.
 */
TtStatus tt_framestore_find(TtFrameStore *s, uint64_t seq, TtFrameEntry *e, TtDiag *diag);
/*
 * tt_framestore_read: the bytes of frame @seq, which has the hash @hash
 * @len, @data: on TT_OK its bytes, valid until the next call
 * Returns as tt_framestore_find; TT_ERR_FORMAT, too, if the bytes have another hash. The
 * frame that was read last is not read again.
 */
TtStatus tt_framestore_read(TtFrameStore *s, uint64_t seq, uint64_t hash,
                            const uint8_t **data, uint32_t *len, TtDiag *diag);

/* ---- a part of a frame, which a log names ---- */

/* The bytes that a device wrote to RAM are those of a frame, from @at on. */
typedef struct TtFramePart {
    uint8_t run[TT_RUN_BYTES];  /* of the sender */
    uint64_t seq, hash;         /* of the frame */
    uint32_t at;
} TtFramePart;

#define TT_FRAMEPART_BYTES_MAX  (8 + TT_RUN_BYTES + 10 + 5)
/* Less is not worth a name. */
#define TT_FRAMEPART_MIN        64

/* The data of an event of kind `payload`. Returns its length. */
uint32_t tt_framepart_put(uint8_t out[TT_FRAMEPART_BYTES_MAX], const TtFramePart *p);
/* @bytes: how many the event stands for. TT_ERR_FORMAT: it is damaged. */
TtStatus tt_framepart_get(TtFramePart *p, uint64_t bytes, const uint8_t *data, uint32_t len,
                          TtDiag *diag);
/*
 * tt_framepart_match: do bytes that a device wrote contain those of a frame?
 * @from: of the frame's bytes, how many were found in what was written before
 * @at: filled in: where in @written they begin
 * Returns how many, from @from of the frame on; 0: none, or fewer than TT_FRAMEPART_MIN.
 * They are equal. It may find fewer than there are: not if @written has a piece of the
 * frame once. O(@len).
 */
uint32_t tt_framepart_match(const uint8_t *written, uint64_t len, const uint8_t *frame,
                            uint32_t frame_len, uint32_t from, uint64_t *at);

/* ---- all stores of a group ---- */

/* A directory with the stores of several runs, each named by the run's UUID. */
typedef struct TtFrameStores TtFrameStores;

/* @dir is copied; it need not exist. Never NULL. */
TtFrameStores *tt_framestores_new(const char *dir);
void tt_framestores_free(TtFrameStores *all);
/* The store of @run in @dir; g_free. */
char *tt_framestores_path(const char *dir, const uint8_t run[TT_RUN_BYTES]);
/*
 * tt_framestores_have: is @f (with its hash) there, to be read later?
 * A run that has no store when it is asked for first is not asked for again, until 1,024
 * others were. So a sender makes its store before it sends. Of 64 runs the stores are open.
 */
bool tt_framestores_have(TtFrameStores *all, const TtFrame *f);
/*
 * tt_framestores_read: @bytes bytes of the frame of @p, from its @at on, into @out
 * They are compared with the hash. Returns TT_OK, or TT_ERR_IO, _FORMAT, _VERSION with a
 * sentence that names run and frame and says what to do. It may be tried again.
 */
TtStatus tt_framestores_read(TtFrameStores *all, const TtFramePart *p, uint64_t bytes,
                             uint8_t *out, TtDiag *diag);

#endif
