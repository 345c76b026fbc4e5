#!/bin/sh
# The steps of the last stage of the image: copies the installed files and creates user and data folder.
#
# usage: packaging/docker/final.sh TREE ROOT
#
# In: TREE, made by `packaging/install.sh install` with DESTDIR=TREE and PREFIX=/usr. Out: ROOT (`/` in the image)
# with the program, its health check and the user `tidalite` (uid and gid 10001), which owns the data folder.
set -eu

tree=$1
root=${2%/}
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
id=10001

install -D -m 755 "$tree/usr/bin/tidalite" "$root/usr/bin/tidalite"
install -D -m 755 "$here/healthcheck.sh" "$root/usr/lib/tidalite/healthcheck"
install -D -m 644 "$tree/usr/share/doc/tidalite/LICENSE" "$root/usr/share/doc/tidalite/LICENSE"
echo "tidalite:x:$id:" >>"$root/etc/group"
echo "tidalite:x:$id:$id:Tidalite database:/var/lib/tidalite:/usr/sbin/nologin" >>"$root/etc/passwd"
install -d -o "$id" -g "$id" -m 750 "$root/var/lib/tidalite"
