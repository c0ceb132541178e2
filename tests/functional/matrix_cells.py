# SPDX-License-Identifier: GPL-2.0-or-later
"""The cells of the matrix, as data: what QEMU is given, what the guest does.

What the fields mean is in matrix_cell.py; cells of rarer devices are in
matrix_more.py.
"""
import shutil

from matrix_cell import (DISK, FRAMES, MIB, SMALL, STREAM, Cell, disk, display,
                         drive, keys, nic, no_node)
from matrix_more import (MORE_BUSES, MORE_DEVICES, MORE_DISKS, MORE_NETS,
                         MORE_USB)

MACHINES = [
    Cell('pc', 'pc, SeaBIOS, -kernel', works='procs,rand', boot='bzimage'),
    Cell('q35', 'q35, SeaBIOS, -kernel', works='procs,rand', machine='q35',
         boot='bzimage'),
    # Its kernel has no clock to measure the TSC by, without -tt too.
    Cell('microvm', 'microvm, PVH, virtio-mmio disk',
         machine='microvm,acpi=on', files=DISK,
         args=(*drive(), '-device', 'virtio-blk-device,drive=d0'),
         works='disk:vda,rand,reboot', modules='virtio_mmio,virtio_blk',
         append='reboot=triple tsc_early_khz=2000000'),
    Cell('pvh', 'pc, PVH: an ELF kernel', works='procs,rand'),
    Cell('ovmf', 'OVMF, -kernel', machine='q35', works='procs,rand',
         boot='bzimage', args=('-drive', 'if=pflash,format=raw,readonly=on,'
               'file=/usr/share/OVMF/OVMF_CODE.fd',
               '-drive', 'if=pflash,format=raw,file={work}/vars.fd'),
         copies=(('vars.fd', '/usr/share/OVMF/OVMF_VARS.fd'),)),
    Cell('ovmf-smm', 'OVMF with secure boot, which lives in SMM',
         machine='q35,smm=on', works='procs', boot='bzimage',
         args=('-global', 'driver=cfi.pflash01,property=secure,value=on',
               '-drive', 'if=pflash,format=raw,readonly=on,'
               'file=/usr/share/OVMF/OVMF_CODE_4M.secboot.fd',
               '-drive', 'if=pflash,format=raw,file={work}/vars.fd'),
         copies=(('vars.fd', '/usr/share/OVMF/OVMF_VARS_4M.fd'),)),
    Cell('no-hpet', 'no HPET', machine='pc,hpet=off', works='clock'),
    Cell('hpet', 'HPET as the clock', works='clock', cpu='qemu64,-tsc',
         append='clocksource=hpet', shows=('clock hpet',)),
    Cell('rtc', 'RTC: read, set, alarm', works='rtc'),
    Cell('acpi-pm', 'the timer of ACPI as the clock', works='clock',
         append='clocksource=acpi_pm', shows=('clock acpi_pm',)),
    Cell('iommu', 'Intel vIOMMU on q35', machine='q35',
         args=('-device', 'intel-iommu', *drive(), '-device',
               'nvme,drive=d0,serial=1', '-netdev', 'user,id=n0', '-device',
               'e1000e,netdev=n0'), files=DISK,
         works='iommu,direct:nvme0n1,disk:nvme0n1,ping:eth0', modules='nvme,e1000e',
         append='intel_iommu=on'),
]

DISKS = [
    disk('ide', 'IDE disk', 'ide-hd,drive=d0', 'sda', 'ata_piix,sd_mod'),
    disk('ahci', 'AHCI disk of q35', 'ide-hd,drive=d0', 'sda', 'ahci,sd_mod',
         machine='q35'),
    disk('virtio-blk', 'virtio-blk', 'virtio-blk-pci,drive=d0', 'vda',
         'virtio_blk'),
    disk('virtio-scsi', 'virtio-scsi disk', 'scsi-hd,drive=d0', 'sda',
         'virtio_scsi,sd_mod', before=('-device', 'virtio-scsi-pci')),
    disk('nvme', 'NVMe', 'nvme,drive=d0,serial=1', 'nvme0n1', 'nvme'),
    disk('lsi', 'LSI 53C895A', 'scsi-hd,drive=d0', 'sda',
         'sym53c8xx,sd_mod', before=('-device', 'lsi53c895a')),
    disk('megasas', 'MegaRAID SAS', 'scsi-hd,drive=d0', 'sda',
         'megaraid_sas,sd_mod', before=('-device', 'megasas')),
    # It shows no disk that has no name of its own.
    disk('mptsas', 'LSI SAS1068', 'scsi-hd,drive=d0,wwn=0x5000c50015ea71ad',
         'sda', 'mptspi,mptsas,sd_mod', before=(
             '-device', 'mptsas1068,sas_address=0x5000c50015ea71ac')),
    disk('pvscsi', 'VMware PVSCSI', 'scsi-hd,drive=d0', 'sda',
         'vmw_pvscsi,sd_mod', before=('-device', 'pvscsi')),
    disk('sdhci', 'SD card', 'sd-card,drive=d0', 'mmcblk0',
         'sdhci-pci,mmc_block', 'raw:', before=('-device', 'sdhci-pci')),
    disk('usb-xhci', 'USB disk on xHCI', 'usb-storage,drive=d0', 'sda',
         'xhci-pci,usb-storage,sd_mod', before=('-device', 'qemu-xhci')),
    disk('usb-ehci', 'USB disk on EHCI', 'usb-storage,drive=d0', 'sda',
         'ehci-pci,usb-storage,sd_mod', before=('-device', 'usb-ehci')),
    disk('usb-uhci', 'USB disk on UHCI', 'usb-storage,drive=d0', 'sda',
         'uhci-hcd,usb-storage,sd_mod', 'raw:',
         before=('-device', 'piix3-usb-uhci')),
    disk('usb-uas', 'USB attached SCSI on xHCI', 'scsi-hd,drive=d0', 'sda',
         'xhci-pci,uas,sd_mod',
         before=('-device', 'qemu-xhci', '-device', 'usb-uas')),
    disk('floppy', 'floppy disk', 'floppy,drive=d0', 'fd0', 'floppy', 'raw:',
         files=(('d.img', 1474560),)),
    disk('cdrom', 'IDE CD-ROM', 'ide-cd,drive=d0', 'sr0', 'ata_piix,sr_mod',
         'cd:', files=SMALL, options=',readonly=on'),
    disk('scsi-cd', 'virtio-scsi CD-ROM', 'scsi-cd,drive=d0', 'sr0',
         'virtio_scsi,sr_mod', 'cd:', files=SMALL, options=',readonly=on',
         before=('-device', 'virtio-scsi-pci')),
    disk('aio-threads', 'aio=threads, cache=none', 'virtio-blk-pci,drive=d0',
         'vda', 'virtio_blk', options=',aio=threads,cache=none'),
    disk('aio-native', 'aio=native, cache=none', 'virtio-blk-pci,drive=d0',
         'vda', 'virtio_blk', options=',aio=native,cache=none'),
    disk('iothread-blk', 'virtio-blk with an iothread',
         'virtio-blk-pci,drive=d0,iothread=io0', 'vda', 'virtio_blk',
         before=('-object', 'iothread,id=io0')),
    disk('iothread-queues', 'virtio-blk: queues of two vCPUs, two iothreads',
         '{"driver": "virtio-blk-pci", "drive": "d0", "num-queues": 4, '
         '"iothread-vq-mapping": [{"iothread": "io0"}, '
         '{"iothread": "io1"}]}', 'vda', 'virtio_blk',
         before=('-smp', '2', '-object', 'iothread,id=io0', '-object',
                 'iothread,id=io1')),
    disk('iothread-scsi', 'virtio-scsi with an iothread',
         'scsi-hd,drive=d0', 'sda', 'virtio_scsi,sd_mod',
         before=('-object', 'iothread,id=io0', '-device',
                 'virtio-scsi-pci,iothread=io0')),
    disk('aio-uring', 'aio=io_uring, cache=none', 'virtio-blk-pci,drive=d0',
         'vda', 'virtio_blk', options=',aio=io_uring,cache=none'),
]

NETS = [
    nic('e1000', 'e1000', 'e1000'),
    nic('e1000e', 'e1000e', 'e1000e', machine='q35'),
    nic('rtl8139', 'rtl8139', '8139cp'),
    nic('virtio-net', 'virtio-net-pci', 'virtio_net'),
    nic('igb', 'igb', 'igb', machine='q35'),
    nic('vmxnet3', 'vmxnet3', 'vmxnet3'),
    nic('pcnet', 'pcnet', 'pcnet32'),
    nic('ne2k', 'ne2k_pci', 'ne2k-pci'),
    nic('tulip', 'tulip', 'tulip'),
    nic('e1000-stream', 'e1000', 'e1000', STREAM, peers=FRAMES),
    Cell('vhost', 'virtio-net with vhost of the host\'s kernel', args=(
        '-netdev', 'tap,id=n0,script=no,downscript=no,vhost=on,vhostfd=0',
        '-device', 'virtio-net-pci,netdev=n0'),
        absent='vhost-net support is not compiled in',
        lacks=lambda: no_node('/dev/net/tun')),
    Cell('vhost-user', 'vhost-user', args=(
        '-chardev', 'socket,id=c0,server=on,wait=off,path={work}/vhost.sock',
        '-netdev', 'vhost-user,id=n0,chardev=c0'),
        absent='not compiled into this binary'),
    nic('virtio-stream', 'virtio-net-pci', 'virtio_net', STREAM,
        peers=FRAMES),
]


def tpm(model):
    return Cell(model, f'{model}, served by swtpm', args=(
        '-chardev', 'socket,id=c0,path={work}/tpm.sock', '-tpmdev',
        'emulator,id=t0,chardev=c0', '-device', f'{model},tpmdev=t0'),
        peers=(('swtpm', 'tpm.sock'),), works='tpm', boot='bzimage',
        machine='q35', lacks=lambda: '' if
        shutil.which('swtpm') else 'swtpm is not installed')


DEVICES = [
    Cell('usb-kbd', 'USB keyboard on xHCI, keys typed', args=(
        '-device', 'qemu-xhci', '-device', 'usb-kbd', '-device',
        'usb-tablet'), works='usb:1-2,input:Keyboard',
        modules='xhci-pci,usbhid,hid-generic,evdev', steps=keys()),
    Cell('usb-kbd-uhci', 'USB keyboard on UHCI, keys typed', args=(
        '-device', 'piix3-usb-uhci', '-device', 'usb-kbd'),
        works='usb:1-1,input:Keyboard',
        modules='uhci-hcd,usbhid,hid-generic,evdev', steps=keys()),
    Cell('usb-kbd-ehci', 'USB keyboard on EHCI, keys typed', args=(
        '-device', 'usb-ehci', '-device', 'usb-kbd'),
        works='usb:1-1,input:Keyboard',
        modules='ehci-pci,usbhid,hid-generic,evdev', steps=keys()),
    Cell('ps2', 'the keyboard of the machine, keys typed',
         works='input:AT', modules='evdev', steps=keys()),
    Cell('virtio-input', 'virtio keyboard, keys typed', args=(
        '-device', 'virtio-keyboard-pci'), works='input:QEMU',
        modules='virtio_input,evdev', steps=keys()),
    display('vga-text', 'standard VGA in text mode', 'VGA', works='text'),
    display('vga-vesa', 'standard VGA, mode of its firmware', 'VGA',
            append='vga=0x317', boot='bzimage'),
    display('vga', 'standard VGA, Bochs mode', 'VGA', 'bochs'),
    display('bochs', 'bochs-display', 'bochs-display', 'bochs'),
    display('bochs-q35', 'bochs-display on q35', 'bochs-display', 'bochs',
            machine='q35'),
    display('cirrus', 'Cirrus', 'cirrus-vga', 'cirrus', pictures=False),
    # Its text has a message of QEMU's in it while the driver resets the card.
    display('virtio-vga', 'virtio-vga', 'virtio-vga', 'virtio-gpu',
            pictures='graphics'),
    display('virtio-gpu', 'virtio-gpu-pci on q35', 'virtio-gpu-pci',
            'virtio-gpu', machine='q35', options=',checkpoint-interval=0.5'),
    display('vmware-vga', 'vmware-svga', 'vmware-svga',
            refused='cannot be recorded'),
    Cell('ac97', 'AC97 sound', args=('-audiodev', 'none,id=a0', '-device',
         'AC97,audiodev=a0'), works='sound', modules='snd-intel8x0'),
    Cell('hda', 'Intel HDA sound', args=('-audiodev', 'none,id=a0',
         '-device', 'intel-hda', '-device', 'hda-duplex,audiodev=a0'),
         works='sound', modules='snd-hda-codec-generic,snd-hda-intel'),
    Cell('es1370', 'ES1370 sound', args=('-audiodev', 'none,id=a0',
         '-device', 'ES1370,audiodev=a0'), works='sound',
         modules='snd-ens1370'),
    Cell('virtio-rng', 'virtio-rng', args=('-device', 'virtio-rng-pci'),
         works='hwrng', modules='virtio-rng', shows=('hwrng virtio',)),
    Cell('virtio-serial', 'virtio-serial, echo of the host', args=(
        '-chardev', 'socket,id=c0,path={work}/port.sock', '-device',
        'virtio-serial-pci', '-device', 'virtserialport,chardev=c0'),
        peers=(('echo', 'port.sock'),), works='port',
        modules='virtio_console', shows=('TT-BACK TT-FROM-5',)),
    Cell('balloon', 'virtio-balloon, inflated and deflated', args=(
        '-device', 'virtio-balloon-pci'), works='balloon',
        modules='virtio_balloon', steps=(
            ('TT-WAIT balloon', (('balloon', {'value': 128 * MIB}),)),
            ('TT-WAIT deflate', (('balloon', {'value': 256 * MIB}),)))),
    Cell('balloon-report', 'virtio-balloon, free page reporting', args=(
        '-device', 'virtio-balloon-pci,free-page-reporting=on'),
        works='fill:60,idle,procs', modules='virtio_balloon'),
    Cell('pvpanic', 'pvpanic', args=('-device', 'pvpanic'), works='crash',
         modules='pvpanic', shows=('sysrq: Trigger a crash',)),
    tpm('tpm-tis'),
    tpm('tpm-crb'),
    Cell('virtio-pmem', 'virtio-pmem', args=(
        '-M', 'pc,nvdimm=on', '-m', '256,slots=1,maxmem=1G', '-object',
        'memory-backend-ram,id=m0,size=64M', '-device',
        'virtio-pmem-pci,memdev=m0'), refused='cannot be recorded'),
    Cell('ivshmem', 'ivshmem', args=(
        '-object', 'memory-backend-ram,id=m0,size=1M,share=on', '-device',
        'ivshmem-plain,memdev=m0'), refused='ivshmem'),
    Cell('virtio-mem', 'virtio-mem, memory plugged in', memory=
         '256,maxmem=1G', args=(
             '-object', 'memory-backend-ram,id=m0,size=256M', '-device',
             'virtio-mem-pci,id=vm0,memdev=m0,requested-size=0'),
         works='load:virtio_mem,idle,numa', steps=(
             ('TT-DONE load:virtio_mem', (
                 ('qom-set', {'path': 'vm0', 'property': 'requested-size',
                              'value': 128 * MIB}),)),)),
    Cell('watchdog', 'i6300esb, fed', args=('-device', 'i6300esb'),
         works='watchdog', modules='i6300esb'),
    Cell('watchdog-ib700', 'ib700, fed', args=('-device', 'ib700'),
         works='watchdog', modules='ib700wdt'),
    Cell('watchdog-tco', 'the watchdog of q35, fed', machine='q35', args=(
        '-global', 'ICH9-LPC.noreboot=off'), works='watchdog',
        modules='lpc_ich,iTCO_wdt'),
    Cell('watchdog-reset', 'i6300esb, starved: it resets', args=(
        '-device', 'i6300esb', '-action', 'watchdog=reset'), works='bite',
        modules='i6300esb', reboots=True, steps=(
            ('TT-DONE bite', (('event', 'RESET'),
                              ('set-action', {'reboot': 'shutdown'}))),)),
]

CPUS = [
    Cell('cpu-max', 'every feature of TCG; AVX2 in the kernel', cpu='max',
         works='load:raid6_pq,load:xor,procs', shows=('raid6: avx2x4',)),
    Cell('cpu-haswell', 'Haswell-noTSX', cpu='Haswell-noTSX',
         works='load:raid6_pq,procs', shows=('raid6: avx2x4',)),
    Cell('cpu-epyc', 'EPYC', cpu='EPYC', works='load:raid6_pq,procs',
         shows=('raid6: avx2x4',)),
    Cell('cpu-nehalem', 'Nehalem', cpu='Nehalem', works='load:raid6_pq,procs',
         shows=('raid6: sse2x4',)),
]

HOTDISK = (
    ('TT-WAIT vda', (
        ('blockdev-add', {'node_name': 'd0', 'driver': 'raw', 'file': {
            'driver': 'file', 'filename': '{work}/d.img'}}),
        ('device_add', {'driver': 'virtio-blk-pci', 'id': 'hot',
                        'drive': 'd0'}))),
    ('TT-WAIT gone-vda', (('device_del', {'id': 'hot'}),
                          ('event', 'DEVICE_DELETED'))),
)
HOTNIC = (
    ('TT-WAIT eth0', (
        ('netdev_add', {'type': 'user', 'id': 'n0'}),
        ('device_add', {'driver': 'e1000', 'id': 'hot', 'netdev': 'n0'}))),
    ('TT-WAIT gone-eth0', (('device_del', {'id': 'hot'}),
                           ('event', 'DEVICE_DELETED'))),
)

EVENTS = [
    Cell('suspend', 'ACPI S3 and wake-up', works='suspend,procs', boot='bzimage',
         append='no_console_suspend', steps=(
             ('TT-WAIT suspend', (('event', 'SUSPEND'), ('sleep', 1),
                                  ('system_wakeup', {}))),)),
    Cell('suspend-q35', 'ACPI S3 and wake-up of q35', machine='q35',
         boot='bzimage', works='suspend,procs', append='no_console_suspend', steps=(
             ('TT-WAIT suspend', (('event', 'SUSPEND'), ('sleep', 1),
                                  ('system_wakeup', {}))),)),
    Cell('reboot', 'a reboot', works='reboot', reboots=True, steps=(
        ('TT-DONE reboot', (('event', 'RESET'),
                            ('set-action', {'reboot': 'shutdown'}))),)),
    Cell('triple-fault', 'a reboot by triple fault', works='reboot',
         append='reboot=triple', reboots=True, steps=(
             ('TT-DONE reboot', (('event', 'RESET'),
                                 ('set-action', {'reboot': 'shutdown'}))),)),
    Cell('reset', 'system_reset by QMP', works='idle', reboots=True, steps=(
        ('TT-GUEST-READY', (('sleep', 1), ('system_reset', {}))),)),
    Cell('powerdown', 'system_powerdown and stop, cont by QMP',
         works='idle', steps=(
             ('TT-GUEST-READY', (('stop', {}), ('sleep', 1), ('cont', {}),
                                 ('system_powerdown', {}))),)),
    Cell('plug-disk', 'a disk plugged in and pulled out', files=DISK,
         works='await:vda,disk:vda,gone:vda,procs', modules='virtio_blk',
         steps=HOTDISK),
    Cell('plug-nic', 'a nic plugged in and pulled out',
         works='await:eth0,ping:eth0,gone:eth0,procs', modules='e1000',
         steps=HOTNIC),
    Cell('pull-nic', 'a nic whose ROM the firmware mapped, pulled out',
         args=('-netdev', 'user,id=n0', '-device', 'e1000,netdev=n0,id=hot'),
         works='ping:eth0,gone:eth0,procs,await:eth0,ping:eth0',
         modules='e1000', steps=(
             ('TT-WAIT gone-eth0', (('device_del', {'id': 'hot'}),
                                    ('event', 'DEVICE_DELETED'))),
             ('TT-WAIT eth0', (('device_add', {
                 'driver': 'e1000', 'id': 'hot', 'netdev': 'n0'}),)))),
    Cell('plug-memory', 'memory plugged in', memory='256,slots=2,maxmem=1G',
         works='procs,idle,numa', steps=(
             ('TT-GUEST-READY', (
                 ('object-add', {'qom_type': 'memory-backend-ram',
                                 'id': 'm0', 'size': 128 * MIB}),
                 ('device_add', {'driver': 'pc-dimm', 'id': 'dimm',
                                 'memdev': 'm0'}))),)),
    Cell('plug-usb', 'a USB disk plugged in', files=DISK,
         args=(*drive(), '-device', 'qemu-xhci,id=x'),
         works='await:sda,disk:sda', modules='xhci-pci,usb-storage,sd_mod',
         steps=(('TT-WAIT sda', (('device_add', {
             'driver': 'usb-storage', 'id': 'stick', 'drive': 'd0'}),)),)),
]


def backend(name, what, kind, **more):
    return Cell(name, what, args=(
        '-object', f'{kind},id=ram0,size=256M', '-machine',
        'memory-backend=ram0'), works='procs,rand', **more)


def no_huge_pages():
    try:
        with open('/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages',
                  encoding='ascii') as count:
            return '' if int(count.read()) >= 128 else 'no 128 huge pages'
    except OSError:
        return 'the host kernel has no huge pages'


MEMORY = [
    backend('memfd', 'RAM in a memfd', 'memory-backend-memfd'),
    backend('memory-file', 'RAM in a file of its own',
            'memory-backend-file,share=off,mem-path={work}/ram'),
    backend('hugepages', 'RAM in huge pages',
            'memory-backend-memfd,hugetlb=on', lacks=no_huge_pages),
    Cell('numa', 'two NUMA nodes', args=(
        '-smp', '2', '-object', 'memory-backend-ram,id=a,size=128M',
        '-object', 'memory-backend-ram,id=b,size=128M', '-numa',
        'node,memdev=a,cpus=0', '-numa', 'node,memdev=b,cpus=1'),
        works='numa,procs', shows=('numa 0-1',)),
    Cell('8g', '8 GiB of RAM', memory='8G', works='fill:600',
         limit=500),
    Cell('smp-compile', 'four vCPUs: make -j4 with tcc, the program run',
         boot='', memory='512', args=(
             '-smp', '4', '-kernel', '{guests}/vmlinuz', '-initrd',
             '{guests}/compiler.img', '-append',
             'console=ttyS0 panic=-1 t=own'), limit=400,
         shows=('TT-DONE own cpus=4', 'sum=')),
    disk('smp-nvme', 'two vCPUs, NVMe', 'nvme,drive=d0,serial=1', 'nvme0n1',
         'nvme', before=('-smp', '2')),
    disk('smp-usb', 'two vCPUs, USB disk on xHCI', 'usb-storage,drive=d0',
         'sda', 'xhci-pci,usb-storage,sd_mod',
         before=('-smp', '2', '-device', 'qemu-xhci')),
    Cell('smp-e1000e', 'two vCPUs, e1000e on q35', machine='q35', args=(
        '-smp', '2', '-netdev', 'user,id=n0', '-device', 'e1000e,netdev=n0'),
        works='ping:eth0,procs', modules='e1000e'),
]


def quit_after(seconds, text=''):
    return ((text, (('sleep', seconds), ('quit', {}))),)


def grub_on(name, *args):
    return Cell(f'grub-{name}', f'GRUB on {name}, by the firmware\'s driver',
                boot='', args=(*drive(name='grub.img'), *args),
                copies=(('grub.img', '{guests}/grub.img'),), limit=60,
                steps=quit_after(2, 'grub>'), shows=('GNU GRUB',))


def mini(name, what, *args):
    return Cell(f'mini-{name}', f'QEMU\'s mini kernel {name}{what}', boot='',
                mini=name, limit=60, args=(
                    '-chardev', 'file,id=out,path={work}/output', '-device',
                    'isa-debugcon,chardev=out', '-device',
                    'isa-debug-exit,iobase=0xf4,iosize=0x4', '-kernel',
                    '{mini}', *args))


def plain_linux(name, what, guest, **more):
    return Cell(name, what, guest=guest, boot='bzimage', files=DISK,
                args=(*drive(), '-device', 'virtio-blk-pci,drive=d0',
                      *more.pop('args', ())), works='vda,procs,rand', **more)


SSH = (
    ('login:', (
        ('ssh', 'uname -a; systemctl is-system-running --wait; ps ax | wc -l'),
        ('copy', 2 * MIB),
        ('ssh', 'cat > /var/tmp/hello.deb', '{debian}/hello.deb'),
        ('ssh', 'apt-get install -y /var/tmp/hello.deb && ttvm-hello && '
         'dpkg --verify ttvm-hello && apt-get purge -y ttvm-hello'),
        ('ssh', 'dd if=/dev/urandom of=/var/tmp/f bs=64k count=64 && sync && '
         'echo 3 > /proc/sys/vm/drop_caches && md5sum /var/tmp/f'),
        ('ssh', 'systemd-run --on-active=1 systemctl poweroff'))),
)

SCSI_DISK = ('-device', 'scsi-hd,drive=d0,bootindex=0')


GUESTS = [
    plain_linux('linux-i386', 'Linux 6.1 of 32 bits, PAE', 'i386',
                cpu='qemu32'),
    plain_linux('linux-i386-smp', 'the same on two vCPUs of q35', 'i386',
                machine='q35', args=('-smp', '2')),
    plain_linux('linux-newer', 'Linux 6.12', 'newer'),
    plain_linux('linux-newer-smp', 'Linux 6.12 on two vCPUs, -cpu max', 'newer',
                machine='q35', cpu='max', args=('-smp', '2')),
    Cell('debian-ssh', 'Debian on a disk: systemd, ssh, scp, apt', boot='',
         memory='512', limit=900, args=(
             '-kernel', '{debian}/vmlinuz', '-initrd', '{debian}/initrd.img',
             '-append', 'root=/dev/vda rw console=ttyS0 panic=-1', '-drive',
             'file={debian}/disk.img,format=raw,if=virtio,snapshot=on',
             '-netdev', 'user,id=n0,hostfwd=tcp:127.0.0.1:{port}-:22',
             '-device', 'virtio-net-pci,netdev=n0'), guest='debian',
         steps=SSH, shows=('reboot: Power down',)),
    mini('hello', ''),
    mini('memory', ''),
    mini('interrupt', ', two vCPUs', '-smp', '2'),
    Cell('memtest86', 'memtest86+', boot='', memory='64', args=(
        '-kernel', '{guests}/memtest.bin', '-append',
        'console=ttyS0,115200'), steps=quit_after(12, 'Memtest86+'),
        shows=('Memtest86+',)),
    Cell('ipxe', 'iPXE, its console by the firmware', boot='',
         machine='pc,graphics=off', args=(
             '-kernel', '{guests}/ipxe.lkrn', '-netdev', 'user,id=n0',
             '-device', 'e1000,netdev=n0,romfile='),
         steps=quit_after(12, 'iPXE'), shows=('iPXE',)),
    Cell('grub', 'GRUB at its prompt, keys typed', boot='', args=(
        '-drive', 'file={work}/grub.img,format=raw,if=ide'),
        copies=(('grub.img', '{guests}/grub.img'),),
        steps=quit_after(5, 'grub>'), shows=('GNU GRUB',)),
    grub_on('virtio-scsi', '-device', 'virtio-scsi-pci', *SCSI_DISK),
    grub_on('megasas', '-device', 'megasas', *SCSI_DISK),
    grub_on('iothread', '-object', 'iothread,id=io0', '-device',
            'virtio-blk-pci,drive=d0,iothread=io0'),
    Cell('u-boot', 'U-Boot at its prompt', boot='', args=(
        '-bios', '{guests}/u-boot.rom'), steps=quit_after(2, '=> '),
        shows=('U-Boot',)),
    Cell('uefi-shell', 'the UEFI shell of OVMF', boot='', machine='q35',
         args=('-drive', 'if=pflash,format=raw,readonly=on,'
               'file=/usr/share/OVMF/OVMF_CODE.fd', '-drive',
               'if=pflash,format=raw,file={work}/vars.fd', '-device', 'VGA'),
         copies=(('vars.fd', '/usr/share/OVMF/OVMF_VARS.fd'),),
         pictures=True,
         steps=(('', (('look', 8),)),
                ('Shell>', (('keys', 'v e r ret'), ('look', 6),
                            ('keys', 'm e m m a p ret'), ('look', 8),
                            ('quit', {})))),
         shows=('Shell>',)),
]

GROUPS = (
    ('Machines, firmware, clocks', MACHINES), ('Disks', DISKS),
    ('Networks', NETS), ('Other devices', DEVICES), ('CPU models', CPUS),
    ('Rarer disks', MORE_DISKS), ('Rarer networks', MORE_NETS),
    ('USB', MORE_USB), ('Buses and boards', MORE_BUSES),
    ('Rarer devices', MORE_DEVICES),
    ('What happens to a machine', EVENTS),
    ('Memory and several vCPUs', MEMORY), ('Other guests', GUESTS),
)
CELLS = [cell for _, cells in GROUPS for cell in cells]
