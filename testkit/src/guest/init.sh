#!/bin/sh
# First process of a guest: makes the machine usable, runs /script, powers off. What the script prints goes out over
# the second serial port in the frames that output.rs reads; stderr and the kernel's messages over the first.
/bin/busybox --install -s /bin
export PATH=/bin HOME=/tmp
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
stty -F /dev/ttyS1 raw -echo
exec </dev/null >/dev/ttyS1

# part NAME COMMAND...: its output is kept apart, to the byte.
part() {
    part_name=$1
    shift
    printf '\001begin %s\n' "$part_name"
    "$@"
    set -- "$?"
    printf '\n\001end %s %d\n' "$part_name" "$1"
    return "$1"
}

# bar ADDRESS N: where BAR N of a PCI device begins in memory.
bar() {
    sed -n "$(($2 + 1))s/ .*//p" "/sys/bus/pci/devices/$1/resource"
}

# bind ADDRESS DRIVER: gives a PCI device to a driver; fails when the driver does not take it.
bind() {
    bind_device=/sys/bus/pci/devices/$1
    [ ! -e "$bind_device/driver" ] || echo "$1" >"$bind_device/driver/unbind" || return
    echo "$2" >"$bind_device/driver_override" || return
    echo "$1" >/sys/bus/pci/drivers_probe || return
    [ "$(basename "$(readlink "$bind_device/driver")")" = "$2" ]
}

while read -r module; do
    # Words after the file's name are parameters.
    if ! insmod $module; then
        echo "cannot load $module" >&2
        poweroff -f
    fi
done </modules

(. /script)
printf '\n\001end script %d\n' "$?"
# Closing the port waits until all is sent.
exec >/dev/null
poweroff -f
