# SPDX-License-Identifier: GPL-2.0-or-later
"""Cells of the matrix for the rarer devices, several to a cell.

Devices without a driver in the guest are read by tests/guest-linux/poke.c: the
configuration and the registers of each PCI device, or ports.
"""
from matrix_cell import MIB, Cell, display, keys, no_node


def dev(*devices):
    """-device for each of them."""
    return tuple(a for d in devices for a in ('-device', d))


def drives(count):
    """So many disks, d0.img and on, and the files for them."""
    args = tuple(a for i in range(count) for a in (
        '-drive', f'file={{work}}/d{i}.img,format=raw,if=none,id=d{i}'))
    return args, tuple((f'd{i}.img', 8 * MIB) for i in range(count))


def disks(name, what, modules, *devices, **more):
    """One disk for each drive= of the devices."""
    count = sum('drive=' in d for d in devices)
    args, files = drives(count)
    return Cell(name, what, args=(*more.pop('before', ()), *args,
                                  *dev(*devices)), files=files,
                works=f'{more.pop("first", "")}disks:{count}',
                modules=modules, **more)


def nics(name, what, modules, *devices, **more):
    """A network for each netdev= of the devices; it is n0, n1 and on."""
    count = sum('netdev=' in d for d in devices)
    nets = tuple(a for i in range(count) for a in ('-netdev', f'user,id=n{i}'))
    return Cell(name, what, args=(*more.pop('before', ()), *nets,
                                  *dev(*devices)),
                works=f'{more.pop("first", "")}nics:{count}', modules=modules,
                **more)


def echoes(count):
    """Character devices c0 and on that send back what they get, and their peers."""
    args = tuple(a for i in range(count) for a in (
        '-chardev', f'socket,id=c{i},path={{work}}/c{i}.sock'))
    return args, tuple(('echo', f'c{i}.sock') for i in range(count))


def events(kind, x, y):
    """Input events, slow enough to stay apart: movements, 'rel' or 'abs'."""
    return tuple(
        command for i in range(4) for command in (
            ('input-send-event', {'events': [
                {'type': kind, 'data': {'axis': 'x', 'value': x + i}},
                {'type': kind, 'data': {'axis': 'y', 'value': y + i}}]}),
            ('sleep', 0.1)))


MICE = (
    ('TT-WAIT input:Mouse', events('rel', 5, -9)),
    ('TT-WAIT input:Tablet', events('abs', 900, 12000)),
)

MORE_DISKS = [
    disks('scsi-old', 'LSI 53C810, MegaRAID gen 2, AHCI on pc',
          'sym53c8xx,megaraid_sas,ahci,sd_mod',
          'lsi53c810,id=s2', 'scsi-hd,drive=d0,bus=s2.0',
          'megasas-gen2,id=s3', 'scsi-hd,drive=d1,bus=s3.0',
          'ich9-ahci,id=a1', 'ide-hd,drive=d2,bus=a1.0'),
    # Its disks are plugged in later: the firmware waits for them for ever, without
    # -tt too.
    Cell('scsi-am53c974', 'AM53C974, DC390', args=(
        *drives(2)[0], *dev('am53c974,id=s0', 'dc390,id=s1')),
         files=drives(2)[1], modules='sd_mod', append='s=2', steps=(
             ('TT-GUEST-READY', tuple(('device_add', {
                 'driver': 'scsi-hd', 'drive': f'd{i}', 'bus': f's{i}.0'})
                 for i in (0, 1))),),
         works='idle,load:am53c974,disks:2'),
    disks('ide-piix3', 'PIIX3 IDE on q35', 'ata_piix,sd_mod',
          'piix3-ide,id=i3', 'ide-hd,drive=d0,bus=i3.0', machine='q35'),
    disks('ide-piix4', 'PIIX4 IDE on q35', 'ata_piix,sd_mod', 'piix4-ide,id=i4',
          'ide-hd,drive=d0,bus=i4.0', machine='q35'),
    Cell('scsi-host', 'a SCSI device of the host', args=(
        '-drive', 'file=/dev/sg0,format=raw,if=none,id=d0',
        '-blockdev', 'host_device,node-name=d1,filename=/dev/sr0',
        *dev('virtio-scsi-pci', 'scsi-generic,drive=d0',
             'scsi-block,drive=d1')), works='load:sr_mod',
         modules='virtio_scsi,sd_mod,sr_mod',
         lacks=lambda: no_node('/dev/sg0', '/dev/sr0')),
    disks('nvme-ufs', 'NVMe subsystem of two controllers, UFS',
          'nvme,ufshcd-pci,sd_mod', 'nvme-subsys,id=sub0',
          'nvme,serial=1,subsys=sub0,id=v0', 'nvme,serial=1,subsys=sub0',
          'nvme-ns,drive=d0,nsid=1,bus=v0,shared=off',
          'nvme-ns,drive=d1,nsid=2,bus=v0,shared=off',
          'ufs,id=u0,serial=u', 'ufs-lu,drive=d2,lun=0,bus=u0',
          first='bind:ufshcd/1b36/0013,'),
]

# What e100 wants for some cards; QEMU does not look at it.
UCODE = 'blank:e100/d102e_ucode.bin/539,'

MORE_NETS = [
    nics('eepro100-a', 'i82550, 82551, 82557A-C, 82558A, 82558B', 'e100',
         *(f'{model},netdev=n{i},romfile=' for i, model in enumerate((
             'i82550', 'i82551', 'i82557a', 'i82557b', 'i82557c', 'i82558a',
             'i82558b'))), first=UCODE),
    nics('eepro100-b', 'i82559A-C, 82559ER, 82562, 82801', 'e100',
         *(f'{model},netdev=n{i},romfile=' for i, model in enumerate((
             'i82559a', 'i82559b', 'i82559c', 'i82559er', 'i82562',
             'i82801'))), first=UCODE),
    nics('e1000-old', '82544GC and 82545EM', 'e1000',
         'e1000-82544gc,netdev=n0', 'e1000-82545em,netdev=n1,romfile='),
]

MORE_USB = [
    Cell('usb-ich9', 'ICH9 EHCI 1 with UHCI 1 to 3: hub, mouse, tablet',
         machine='q35', args=dev(
             'ich9-usb-ehci1,id=e,addr=1d.7,multifunction=on',
             'ich9-usb-uhci1,masterbus=e.0,firstport=0,addr=1d.0,'
             'multifunction=on',
             'ich9-usb-uhci2,masterbus=e.0,firstport=2,addr=1d.1',
             'ich9-usb-uhci3,masterbus=e.0,firstport=4,addr=1d.2',
             'usb-hub,bus=e.0,port=1', 'usb-mouse,bus=e.0,port=1.1',
             'usb-tablet,bus=e.0,port=5'),
         works='usbs:3,input:Mouse,input:Tablet,idle', append='s=2',
         modules='ehci-pci,uhci-hcd,usbhid,hid-generic,evdev',
         steps=MICE),
    Cell('usb-ich9-2', 'ICH9 EHCI 2 with UHCI 4 to 6: serial, Braille, card, pen',
         machine='q35', args=(*echoes(2)[0], *dev(
             'ich9-usb-ehci2,id=e,addr=1a.7,multifunction=on',
             'ich9-usb-uhci4,masterbus=e.0,firstport=0,addr=1a.0,'
             'multifunction=on',
             'ich9-usb-uhci5,masterbus=e.0,firstport=2,addr=1a.1',
             'ich9-usb-uhci6,masterbus=e.0,firstport=4,addr=1a.2',
             'usb-serial,bus=e.0,port=1,chardev=c0',
             'usb-braille,bus=e.0,port=3,chardev=c1',
             'usb-ccid,bus=e.0,port=5', 'usb-wacom-tablet,bus=e.0,port=6')),
         peers=echoes(2)[1], works='usbs:4,tty:ttyUSB0',
         modules='ehci-pci,uhci-hcd,ftdi_sio,usbhid,hid-generic,wacom'),
    Cell('usb-ohci', 'OHCI: hub, network, serial', args=(
        *echoes(1)[0], '-netdev', 'user,id=n0', *dev(
            'pci-ohci,id=o,num-ports=4', 'usb-hub,bus=o.0,port=1',
            'usb-net,netdev=n0,bus=o.0,port=2',
            'usb-serial,bus=o.0,port=1.1,chardev=c0')),
         peers=echoes(1)[1], works='usbs:3,tty:ttyUSB0,nics:1',
         modules='ohci-pci,ftdi_sio,cdc_ether,rndis_host'),
    Cell('usb-uhci4', 'PIIX4 UHCI: sound', args=(
        '-audiodev', 'none,id=a0', *dev('piix4-usb-uhci,id=u',
                                        'usb-audio,audiodev=a0,bus=u.0')),
         works='usbs:1,play:1', modules='uhci-hcd,snd-usb-audio'),
    disks('usb-nec', 'NEC xHCI: a SCSI disk, media transfer', 'xhci-pci,'
          'usb-storage,sd_mod', 'nec-usb-xhci,id=x', 'usb-bot,id=b,bus=x.0',
          'scsi-hd,drive=d0,bus=b.0', 'usb-mtp,rootdir={work},bus=x.0'),
    Cell('usb-u2f', 'a security key of the host', args=dev(
        'qemu-xhci', 'u2f-passthru'), works='usbs:1', modules='xhci-pci',
         lacks=lambda: no_node('/dev/hidraw0')),
]

MORE_BUSES = [
    nics('bridges', 'PCI bridges and a second root, each with a nic',
         'e1000,8139cp', 'pci-bridge,id=b0,chassis_nr=1',
         'e1000,netdev=n0,bus=b0,addr=1,romfile=',
         'pci-bridge-seat,id=b1,chassis_nr=2',
         'rtl8139,netdev=n1,bus=b1,addr=1,romfile=',
         'pxb,id=b2,bus_nr=64',
         'e1000,netdev=n2,bus=b2,addr=1,romfile=',
         'i82801b11-bridge,id=b3',
         'rtl8139,netdev=n3,bus=b3,addr=1,romfile='),
    nics('bridges-pcie', 'PCI Express ports, a switch, a second root',
         'e1000,e1000e', 'pcie-root-port,id=r0,chassis=1',
         'e1000e,netdev=n0,bus=r0,romfile=', 'ioh3420,id=r1,chassis=2',
         'x3130-upstream,id=u0,bus=r1',
         'xio3130-downstream,id=w0,bus=u0,chassis=3',
         'e1000e,netdev=n1,bus=w0,romfile=', 'pcie-pci-bridge,id=p0',
         'e1000,netdev=n2,bus=p0,addr=1,romfile=',
         'pxb-pcie,id=x0,bus_nr=64', 'pcie-root-port,id=r2,bus=x0,chassis=4',
         'e1000e,netdev=n3,bus=r2,romfile=', machine='q35'),
    Cell('cxl', 'CXL: host bridge, switch, memory', machine=
         'q35,cxl=on,cxl-fmw.0.targets.0=x0,cxl-fmw.0.size=4G', memory=
         '256,maxmem=8G,slots=2', args=(
             '-object', 'memory-backend-ram,id=m0,size=256M',
             '-object', 'memory-backend-ram,id=l0,size=1M',
             '-object', 'memory-backend-ram,id=m1,size=256M', *dev(
                 'pxb-cxl,id=x0,bus_nr=12', 'cxl-rp,id=r0,bus=x0,chassis=1,'
                 'slot=1,port=0', 'cxl-rp,id=r1,bus=x0,chassis=1,'
                 'slot=2,port=1',
                 'cxl-upstream,id=u0,bus=r0,addr=0.0,multifunction=on',
                 'cxl-switch-mailbox-cci,bus=r0,addr=0.1,target=u0',
                 'cxl-downstream,id=w0,bus=u0,port=0,chassis=1,slot=4',
                 'cxl-type3,bus=w0,persistent-memdev=m0,lsa=l0,sn=1',
                 'cxl-type3,bus=r1,volatile-memdev=m1,sn=2')),
         works='poke:pci,list:cxl', shows=('mem0 mem1',),
         modules='cxl_acpi,cxl_pci,cxl_mem,cxl_pmem'),
    Cell('amd-iommu', 'AMD vIOMMU on q35', machine='q35', files=drives(1)[1],
         args=(*drives(1)[0], '-netdev', 'user,id=n0', *dev(
             'amd-iommu', 'nvme,drive=d0,serial=1',
             'e1000e,netdev=n0,romfile=')), append='amd_iommu=on',
         works='iommu,direct:nvme0n1,disks:1,nics:1', modules='nvme,e1000e'),
    Cell('virtio-iommu', 'virtio-iommu, without a driver', machine='q35',
         files=drives(1)[1], args=(*drives(1)[0], *dev(
             'virtio-iommu-pci', 'virtio-blk-pci,drive=d0')),
         works='disks:1,poke:pci', modules='virtio_blk'),
]

TRANSITIONAL, MODERN = 'transitional', 'non-transitional'


def virtio(kind):
    """Every virtio device that comes in that kind."""
    args, files = drives(2)
    chars, peers = echoes(1)
    return Cell(f'virtio-{kind[:5]}', f'every virtio device that has -{kind}',
                args=(*args, *chars, '-netdev', 'user,id=n0', *dev(
                    f'virtio-blk-pci-{kind},drive=d0',
                    f'virtio-scsi-pci-{kind},id=s', 'scsi-hd,drive=d1,bus=s.0',
                    f'virtio-net-pci-{kind},netdev=n0,romfile=',
                    f'virtio-rng-pci-{kind}', f'virtio-balloon-pci-{kind}',
                    f'virtio-serial-pci-{kind},id=p',
                    'virtconsole,chardev=c0,bus=p.0')),
                files=files, peers=peers,
                works='disks:2,nics:1,hwrng,tty:hvc0,balloon', modules=
                'virtio_blk,virtio_scsi,sd_mod,virtio_net,virtio-rng,'
                'virtio_balloon,virtio_console', steps=(
                    ('TT-WAIT balloon', (('balloon', {'value': 128 * MIB}),)),
                    ('TT-WAIT deflate', (('balloon', {'value': 256 * MIB}),))))


def on_microvm(name, what, modules, works, *devices, **more):
    return Cell(name, what, machine='microvm,acpi=on,ioapic2=on',
                works=works + ',reboot', modules='virtio_mmio,' + modules,
                append='reboot=triple tsc_early_khz=2000000 s=2', args=(
                    '-global', 'virtio-mmio.force-legacy=false',
                    *more.pop('before', ()), *dev(*devices)), **more)


def ports(*ops):
    return 'poke:io/' + '+'.join(ops)


def isa(name, what, modules, works, *devices, **more):
    """For a 32-bit PC, whose kernel has drivers for cards of that time."""
    return Cell(name, what, guest='i386', boot='bzimage', cpu='qemu32',
                args=(*more.pop('before', ()), *dev(*devices)),
                modules=modules, works=works, **more)


def ipmi(name, what, device):
    return Cell(name, what, args=dev('ipmi-bmc-sim,id=b', f'{device},bmc=b'),
                works='poke:ipmi/0', modules='ipmi_si,ipmi_devintf')


SYSBUS = 'expects a dynamic sysbus device type for the machine'


def barred(device, text, name='', **more):
    what = device.split(',')[0]
    return Cell(name or what, what, args=dev(device), boot='', barred=text, **more)


AUDIO = ('-audiodev', 'none,id=a0')
RESERVED = 'memmap=64K$0x8000000'

MORE_DEVICES = [
    virtio(TRANSITIONAL),
    virtio(MODERN),
    on_microvm('virtio-mmio', 'virtio by MMIO: disk, net, console, rng, balloon',
               'virtio_scsi,sd_mod,virtio_net,virtio-rng,virtio_balloon,'
               'virtio_console,virtio_crypto,algif_skcipher',
               'disks:1,nics:1,hwrng,tty:hvc0,poke:aes/virtio_crypto_aes_cbc,'
               'balloon',
               'virtio-scsi-device,id=s', 'scsi-hd,drive=d0,bus=s.0',
               'virtio-net-device,netdev=n0', 'virtio-rng-device',
               'virtio-balloon-device', 'virtio-serial-device,id=p',
               'virtconsole,chardev=c0,bus=p.0',
               'virtio-crypto-device,cryptodev=k0', before=(
                   *drives(1)[0], *echoes(1)[0], '-netdev', 'user,id=n0',
                   '-object', 'cryptodev-backend-builtin,id=k0'),
               files=drives(1)[1], peers=echoes(1)[1], steps=(
                   ('TT-WAIT balloon', (('balloon', {'value': 128 * MIB}),)),
                   ('TT-WAIT deflate', (('balloon', {'value': 256 * MIB}),)))),
    on_microvm('virtio-mmio-2', 'virtio by MMIO: input, display, sound, mem',
               'virtio_input,evdev,virtio-gpu',
               'fb,input:Keyboard,input:Mouse,input:Tablet,idle',
               'virtio-gpu-device', 'virtio-keyboard-device',
               'virtio-mouse-device', 'virtio-tablet-device',
               'virtio-multitouch-device', 'virtio-sound-device,audiodev=a0',
               'virtio-mem,memdev=m0', memory='256,maxmem=1G', before=(
                   *AUDIO, '-object', 'memory-backend-ram,id=m0,size=64M'),
               steps=(
                   ('TT-WAIT input:Keyboard', (('keys', 'a b'),)), *MICE)),
    Cell('virtio-input-2', 'virtio mouse, tablet, multitouch; sound, crypto',
         args=(*AUDIO, '-object', 'cryptodev-backend-builtin,id=k0', *dev(
             'virtio-mouse-pci', 'virtio-tablet-pci', 'virtio-multitouch-pci',
             'virtio-sound-pci,audiodev=a0', 'virtio-crypto-pci,cryptodev=k0')),
         works='poke:aes/virtio_crypto_aes_cbc,input:Mouse,input:Tablet,idle',
         append='s=2',
         modules='virtio_input,evdev,virtio_crypto,algif_skcipher',
         steps=MICE),
    Cell('virtio-host', 'input devices of the host', args=dev(
        'virtio-input-host-pci,evdev=/dev/input/event0'),
         has='virtio-input-host-device',
         works='load:virtio_input', modules='virtio_input',
         lacks=lambda: no_node('/dev/input/event0')),
    Cell('can', 'CAN: Kvaser by its driver; CTU, PCM-3680, MIOe-3680 read',
         args=('-object', 'can-bus,id=c', *dev(
             'kvaser_pci,canbus=c', 'kvaser_pci,canbus=c',
             'ctucan_pci,canbus0=c,canbus1=c',
             'pcm3680_pci,canbus0=c,canbus1=c',
             'mioe3680_pci,canbus0=c,canbus1=c')),
         works='poke:pci,poke:can/can0/can1',
         modules='kvaser_pci,can-raw', shows=('id 123, 8 bytes: 54 54 2d',)),
    ipmi('ipmi-kcs', 'IPMI by KCS on ISA', 'isa-ipmi-kcs'),
    ipmi('ipmi-bt', 'IPMI by BT on ISA', 'isa-ipmi-bt'),
    ipmi('ipmi-pci-kcs', 'IPMI by KCS on PCI', 'pci-ipmi-kcs'),
    ipmi('ipmi-pci-bt', 'IPMI by BT on PCI', 'pci-ipmi-bt'),
    Cell('ipmi-smbus', 'IPMI by SMBus; a controller elsewhere that is silent',
         machine='q35', args=('-chardev', 'null,id=c0', *dev(
             'ipmi-bmc-sim,id=b0', 'ipmi-bmc-extern,id=b1,chardev=c0',
             'smbus-ipmi,bmc=b0,address=0x20', 'isa-ipmi-kcs,bmc=b1',
             'i2c-echo,address=0x40', 'i2c-ddc,address=0x50')),
         works='i2c:SMBus,poke:ipmi/0',
         modules='i2c-i801,i2c-dev,ipmi_devintf,ipmi_ssif,ipmi_si'),
    Cell('serial-cards', 'serial ports of ISA and PCI', args=(
        *echoes(8)[0], *dev(
            'isa-serial,chardev=c0', 'pci-serial,chardev=c1',
            'pci-serial-2x,chardev1=c2,chardev2=c3',
            'pci-serial-4x,chardev1=c4,chardev2=c5,chardev3=c6,chardev4=c7')),
         peers=echoes(8)[1], append='8250.nr_uarts=16',
         works=','.join(f'tty:ttyS{n}' for n in (1, 4, 5, 6, 7, 8, 9, 10))),
    Cell('sound-hda', 'ICH9 HDA: output, microphone', machine='q35', args=(
        *AUDIO, *dev('ich9-intel-hda', 'hda-output,audiodev=a0',
                     'hda-micro,audiodev=a0')),
         works='play:1', modules='snd-hda-codec-generic,snd-hda-intel'),
    isa('isa-sound', 'AdLib, Sound Blaster 16, CS4231A; GUS probed',
        'snd-adlib,snd-sb16,snd-gusclassic,snd-cs4231', 'play:2',
        'adlib,audiodev=a0', 'sb16,audiodev=a0,iobase=0x240',
        'gus,audiodev=a0,iobase=0x260',
        'cs4231a,audiodev=a0,dma=0,irq=10', before=AUDIO,
        append='snd_adlib.port=0x388 snd_sb16.port=0x240 snd_sb16.irq=5 '
        'snd_sb16.dma8=1 snd_sb16.dma16=5 snd_gusclassic.port=0x260 '
        'snd_gusclassic.irq=7 snd_gusclassic.dma1=3 snd_cs4231.port=0x534 '
        'snd_cs4231.irq=10 snd_cs4231.dma1=0 snd_cs4231.dma2=0 '
        'snd_sb16.isapnp=0 snd_gusclassic.dma2=7'),
    isa('isa-cards', 'NE2000, IDE, CompactFlash, floppy, printer of ISA',
        'ne,pata_legacy,sd_mod,floppy,parport_pc,lp',
        'nics:1,disks:1,print:lp0', 'ne2k_isa,netdev=n0,irq=5',
        'isa-ide,id=i', 'ide-cf,drive=d0,bus=i.0',
        'isa-parallel,chardev=c0', 'isa-fdc', machine='q35',
        before=(*drives(1)[0], '-netdev', 'user,id=n0', '-chardev',
                'file,id=c0,path={work}/printed'), files=drives(1)[1],
        append='ne.io=0x300 ne.irq=5 pata_legacy.probe_all=1'),
    display('ati-vga', 'ATI Rage 128', 'ati-vga', 'aty128fb',
            pictures=False),
    display('secondary-vga', 'a second VGA', 'secondary-vga', 'bochs'),
    display('isa-vga', 'VGA of ISA in text mode', 'isa-vga', works='text'),
    display('isa-cirrus', 'Cirrus of ISA in text mode', 'isa-cirrus-vga',
            works='text', pictures=False),
    display('ramfb', 'ramfb in text mode', 'ramfb', works='text,fwcfg',
            modules='qemu_fw_cfg', pictures=False),
    Cell('test-devices', 'edu, rocker and QEMU\'s test devices, by registers',
         append=RESERVED, args=dev(
             'edu', 'rocker,name=sw', 'pci-testdev,membar=1M', 'pc-testdev',
             'tpci200,id=t', 'ipoctal232,bus=t.0', 'AMDVI-PCI'),
         works=','.join((
             'poke:pci',
             # edu: 8! as a factorial; RAM to it, and back elsewhere.
             'poke:mem/w4.8000000.cafe',
             'poke:bar/1234:11e8:0/w4.8.8+s100+r4.8+w8.80.8000000+w8.88.40000+'
             'w8.90.100+w8.98.1+s200+w8.80.40000+w8.88.8001000+w8.98.3+s200+'
             'r8.98',
             # rocker: fills RAM.
             'poke:bar/1b36:6:0/w4.10.21+r4.10+w8.28.8002000+w4.30.100+'
             'w4.34.2+s100',
             'poke:mem/r4.8001000+r4.8002000',
             'poke:bar/1498:30c8:3/r1.80+r1.82+r1.84+r1.86',
             ports('w4.e0.12345678', 'r4.e0', 'r1.e8'))),
         shows=(' 9d80 ', ' cafe 96969696', ' 49 50 41 43')),
    Cell('boards', 'devices of one board or another, by ports and addresses',
         machine='pc,i8042=off', args=dev(
             'i8042', 'isa-applesmc',
             'mc146818rtc,iobase=0x170,irq=10', 'pvpanic-pci',
             'vmgenid', 'vmclock', 'vmcoreinfo',
             'loader,addr=0x8000000,data=0xcafe,data-len=4', 'i2c-echo,'
             'address=0x40', 'sdhci-pci', 'sd-card-spi', 'uefi-vars-x64',
             'hyperv-testdev',
             'vmbus-bridge', 'hv-syndbg,host_ip=127.0.0.1'),
         works=','.join((
             'i2c:SMBus', 'fwcfg', ports('w1.170.0', 'r1.171'),
             # The SMC: read key REV.
             ports('w1.304.10', *(f'w1.300.{b:x}' for b in b'REV \6'),
                   *6 * ('r1.300',)),
             'poke:mem/r4.8000000', 'input:AT', 'crash')),
         append=RESERVED, steps=keys(),
         modules='i2c-piix4,i2c-dev,psmouse,evdev,pvpanic-pci,'
         'qemu_fw_cfg,sdhci-pci,mmc_block', shows=(' cafe', ' 1 13 f 0 0 3')),
    Cell('vmmouse', 'the mouse of VMware that the machine has', has='vmmouse',
         machine='pc,vmport=on', cpu='qemu64,-hypervisor',
         args=('-smbios', 'type=1,serial=VMware-1'), works='input:VMMouse,idle',
         append='s=2', modules='psmouse,evdev',
         steps=(('TT-WAIT input:VMMouse', MICE[1][1]),)),
    barred('xen-platform', 'xen-platform device requires a Xen guest'),
    *(barred(d, f"No 'xen-bus' bus found for device '{d}'") for d in (
        'xen-disk', 'xen-cdrom', 'xen-console', 'xen-net-device')),
    barred('xen-backend', SYSBUS), barred('uefi-vars-sysbus', SYSBUS),
    barred('virtio-iommu-device', 'is not attached to any PCI bus',
           'viommu-mmio', machine='microvm,acpi=on'),
    barred('guest-loader,addr=0x8000000,kernel={guests}/vmlinuz',
           'Cannot modify FDT fields if the machine has none'),
]
