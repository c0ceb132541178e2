/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Block driver `tt`: errors of the map, in the words of the block layer.
 */
#include "qemu/osdep.h"
#include "block-tt/glue/tt-blk-int.h"
#include "qapi/error.h"

int tt_blk_errno(TtStatus status, const TtDiag *diag)
{
    switch (status) {
    case TT_OK:
        return 0;
    case TT_ERR_NOMEM:
        return -ENOMEM;
    case TT_ERR_NOSPACE:
    case TT_ERR_LIMIT:
        return -ENOSPC;
    case TT_ERR_INVALID:
        return -EINVAL;
    case TT_ERR_VERSION:
        return -ENOTSUP;
    default:
        return diag->os_errno ? -diag->os_errno : -EIO;
    }
}

void tt_blk_error(Error **errp, const TtDiag *diag)
{
    error_setg(errp, "%s", diag->text);
}
