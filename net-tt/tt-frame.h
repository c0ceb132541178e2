/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ethernet frames between the VMs of a group, as bytes: the messages of a link, and the
 * notes in the logs of the sender and the receiver of a frame. Format:
 * docs/reference/group-format.rst. Encodes and decodes; what a link does with them:
 * tt-link.h.
 *
 * Context: any thread, no state. Cost: O(bytes); tt_frame_mac hashes all of them.
 * Stability: wire format and log format, through the document.
 */
#ifndef TT_FRAME_H
#define TT_FRAME_H

#include "io/tt-base.h"

#define TT_RUN_BYTES            16
#define TT_NONCE_BYTES          16
#define TT_MAC_BYTES            32
#define TT_GROUP_NAME_MAX       63      /* bytes */
#define TT_GROUP_KEY_MIN        16
#define TT_GROUP_KEY_MAX        4096
#define TT_FRAME_BYTES_MIN      14      /* an Ethernet header */
#define TT_FRAME_BYTES_MAX      69632   /* what QEMU's own netdevs take */
#define TT_FRAME_NO_POS         UINT64_MAX
#define TT_EPOCH_MAX            1000000 /* checkpoints of a group */
#define TT_HELLO_BYTES          96
#define TT_MESSAGE_HEAD_BYTES   64

/* A frame and where it comes from. */
typedef struct TtFrame {
    uint8_t run[TT_RUN_BYTES];  /* of the sender; of one that does not record: any,
                                   of its own */
    bool is_recorded;
    uint64_t pos;               /* at which it was sent; TT_FRAME_NO_POS: unrecorded */
    uint64_t seq;               /* counts the frames of the sender's process */
    uint32_t epoch;             /* of the sender: checkpoints of the group before this */
    uint64_t hash;              /* XXH3-64 of the bytes */
    const uint8_t *data;
    uint32_t len;
    bool is_incident;           /* no frame: the text of a TtIncident; see below */
    bool is_epoch;              /* no frame: checkpoint @epoch of the group was made */
} TtFrame;

uint64_t tt_frame_hash(const uint8_t *data, uint32_t len);

/* ---- the first bytes of each side ---- */

typedef struct TtHello {
    bool is_authenticated;
    bool is_hub;
    uint8_t nonce[TT_NONCE_BYTES];
    char group[TT_GROUP_NAME_MAX + 1];
} TtHello;

/* Is it a name for a group: letters, digits, ".", "_", "-", not too many? */
bool tt_group_name_is_fit(const char *name);
void tt_hello_put(uint8_t out[TT_HELLO_BYTES], const TtHello *h);
/* TT_ERR_FORMAT: no hello; TT_ERR_VERSION: of a newer version. */
TtStatus tt_hello_get(TtHello *h, const uint8_t in[TT_HELLO_BYTES], TtDiag *diag);

/* ---- messages ---- */

/* EPOCH: the sender has made the checkpoint frame.epoch of the group. INCIDENT: something
 * went wrong where the message comes from first. REFUSED: the sender takes no peer now, and
 * closes; frame.seq is a TtRefusal. */
enum {
    TT_MESSAGE_READY = 1, TT_MESSAGE_FRAME = 2, TT_MESSAGE_EPOCH = 3,
    TT_MESSAGE_INCIDENT = 4, TT_MESSAGE_REFUSED = 5,
};

typedef enum TtRefusal {
    TT_REFUSED_HAS_PEER = 1, TT_REFUSED_HAS_MEMBERS = 2, TT_REFUSED_IS_FULL = 3,
} TtRefusal;

typedef struct TtMessage {
    uint8_t kind;
    uint64_t number;            /* on this link, in this direction, from 0 on */
    TtFrame frame;              /* data: the caller's */
} TtMessage;

void tt_message_put(uint8_t out[TT_MESSAGE_HEAD_BYTES], const TtMessage *m);
/* All but the data. TT_ERR_FORMAT, TT_ERR_LIMIT: the bytes that follow cannot be
 * understood either. */
TtStatus tt_message_get(TtMessage *m, const uint8_t in[TT_MESSAGE_HEAD_BYTES],
                        TtDiag *diag);

/* ---- incidents ---- */

/* By which ways, since its process began, the VM may have got frames: they come before an
 * incident that goes by another one. 0 also in notes of older versions. */
enum {
    TT_WAYS_FILTER = 1,         /* it has had a filter-tt */
    TT_WAYS_SEVERAL = 2,        /* it has had several netdevs tt at a time */
};

#define TT_INCIDENT_MARK_MAX    64      /* bytes */
#define TT_INCIDENT_WHAT_MAX    120
#define TT_INCIDENT_TEXT_MAX    (1 + TT_INCIDENT_MARK_MAX + TT_INCIDENT_WHAT_MAX)
#define TT_INCIDENT_NOTE_MAX    (TT_RUN_BYTES + 8 + TT_INCIDENT_TEXT_MAX)

/* Something went wrong in the run of a member: it stood at pos, the place has a mark. */
typedef struct TtIncident {
    uint8_t run[TT_RUN_BYTES];
    uint64_t pos;
    uint64_t number;            /* counts those that this process found */
    char mark[TT_INCIDENT_MARK_MAX + 1];
    char what[TT_INCIDENT_WHAT_MAX + 1];        /* words for people */
} TtIncident;

/* As the TtFrame of a message, whose data is @text. What is too long is cut off. */
TtFrame tt_incident_put(const TtIncident *i, uint8_t text[TT_INCIDENT_TEXT_MAX]);
/* From a frame that is_incident. TT_ERR_FORMAT. */
TtStatus tt_incident_get(TtIncident *i, const TtFrame *f, TtDiag *diag);
/* The data of its note in a log; the event's val is the number. Returns its length. */
uint32_t tt_incident_note_put(uint8_t out[TT_INCIDENT_NOTE_MAX], const TtIncident *i);
TtStatus tt_incident_note_get(TtIncident *i, uint64_t number, const uint8_t *data,
                              uint32_t len, TtDiag *diag);

/* ---- authentication ---- */

/* The key of one direction of a link: of the one who sends with nonce @from, and is a hub
 * or not, to the one with @to. So what one port of a hub says is wrong at another. @key:
 * that of the group. */
void tt_frame_link_key(uint8_t out[TT_MAC_BYTES], const uint8_t *key, size_t key_len,
                       const char *group, const uint8_t from[TT_NONCE_BYTES],
                       const uint8_t to[TT_NONCE_BYTES], bool from_hub);
/* HMAC-SHA-256 of head and data. */
void tt_frame_mac(uint8_t out[TT_MAC_BYTES], const uint8_t key[TT_MAC_BYTES],
                  const uint8_t head[TT_MESSAGE_HEAD_BYTES], const uint8_t *data,
                  uint32_t len);
/* Takes as long whether they are equal or not. */
bool tt_mac_is_equal(const uint8_t a[TT_MAC_BYTES], const uint8_t b[TT_MAC_BYTES]);

/* ---- notes in a log: the event kinds `frame-out` and `frame-in` ---- */

#define TT_FRAME_OUT_MAX    (8 + 5)
#define TT_FRAME_IN_MAX     (8 + TT_RUN_BYTES + 5)

/* The data of the event; its val is the sequence, its aux the length, the addr of
 * `frame-in` the sender's position. Returns the number of bytes. */
uint32_t tt_frame_out_put(uint8_t out[TT_FRAME_OUT_MAX], const TtFrame *f);
uint32_t tt_frame_in_put(uint8_t out[TT_FRAME_IN_MAX], const TtFrame *f);
/* Into an @f with seq, len and pos, those of the event. Of a frame that was sent the run
 * is not in it: it is that of the log. */
TtStatus tt_frame_out_get(TtFrame *f, const uint8_t *data, uint32_t len, TtDiag *diag);
TtStatus tt_frame_in_get(TtFrame *f, const uint8_t *data, uint32_t len, TtDiag *diag);

/* ---- notes in a log: the event kind `frame` ---- */

enum {
    TT_FRAME_SENT = 1, TT_FRAME_DELIVERED = 2,  /* of older versions */
    TT_FRAME_EPOCH = 3,         /* checkpoint val of the group is right before (aux 1), or
                                 * is without this run (aux 0) */
    TT_FRAME_KEPT = 4,          /* was on its way at a checkpoint: the frame, or as much of
                                 * it as there is room for */
    TT_FRAME_INCIDENT = 5,      /* of the group: a TtIncident; aux: TT_WAYS_* */
    TT_FRAME_REST = 6,          /* after a KEPT with too little room: the rest of it */
    TT_FRAME_BARE = 7,          /* came by a filter without a trailer: val 1 from the MAC
                                 * address of a member, 0 from another; aux its bytes */
};
#define TT_FRAME_NOTE_MAX       36
#define TT_NETDEV_NAME_MAX      127     /* bytes */
#define TT_FRAME_KEPT_MAX       65536   /* what the data of an event may have */

/* The data of the event; its addr is @what, its val the sequence, its aux the length.
 * Returns the number of bytes. EPOCH: none; val is the epoch. */
uint32_t tt_frame_note_put(uint8_t out[TT_FRAME_NOTE_MAX], unsigned what,
                           const TtFrame *f);
/* KEPT: @out has TT_FRAME_KEPT_MAX bytes. @netdev: which was to get it; one whose name is
 * too long has no name. *@n_rest: how many bytes of the frame, its last, it has no room for;
 * they are the data of REST. */
uint32_t tt_frame_kept_put(uint8_t *out, const TtFrame *f, const char *netdev,
                           uint32_t *n_rest);
/* Of a sent frame run and position are not in it: they are those of the log and of the
 * event. Of an epoch there is nothing but epoch, of BARE only len. Not for KEPT, REST and
 * INCIDENT. */
TtStatus tt_frame_note_get(TtFrame *f, uint64_t what, uint64_t seq, uint32_t aux,
                           const uint8_t *data, uint32_t len, TtDiag *diag);

/* What was kept, from its notes in the order of the log. Zeros to begin with. */
typedef struct TtKept {
    TtFrame frame;              /* its data is bytes */
    char netdev[TT_NETDEV_NAME_MAX + 1];
    uint32_t n;                 /* bytes that are there; below frame.len: REST is missing */
    uint8_t bytes[TT_FRAME_BYTES_MAX];
} TtKept;

/* Takes a KEPT or REST. TT_OK: @k has the whole frame. TT_END: not yet; or it is the rest of
 * one whose beginning the log does not have. */
TtStatus tt_kept_take(TtKept *k, uint64_t what, uint64_t seq, uint32_t aux,
                      const uint8_t *data, uint32_t len, TtDiag *diag);

/* 32 hex digits and a 0. */
void tt_run_text(char out[2 * TT_RUN_BYTES + 1], const uint8_t run[TT_RUN_BYTES]);

#endif
