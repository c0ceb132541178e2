# SPDX-License-Identifier: GPL-2.0-or-later
"""The cells of the matrix that are quick, and that have found something; all of
them: tests/functional/matrix."""

from matrix_cells import CELLS
from matrix_run import need_guests, run_cell
from ttlib import limit, seed


def cell_test(name):
    def test(work):
        cell, = (c for c in CELLS if c.name == name)
        need_guests([cell])
        print(run_cell(cell, work, seed(), positions=3))
    test.__doc__ = (f'Cell {name} of the matrix is recorded, replays exactly, '
                    'and is travelled exactly.')
    return limit(240)(test)


test_amd_iommu = cell_test('amd-iommu')
test_pull_nic = cell_test('pull-nic')
test_plug_memory = cell_test('plug-memory')
test_virtio_scsi = cell_test('grub-virtio-scsi')
test_megasas = cell_test('grub-megasas')
test_iothread = cell_test('grub-iothread')
test_mini_memory = cell_test('mini-memory')
test_mini_interrupt = cell_test('mini-interrupt')
test_rarities = cell_test('test-devices')
