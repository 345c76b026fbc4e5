#!/bin/sh
# Builds tidalite_VERSION_ARCHITECTURE.deb from a built binary.
#
# usage: BINARY=target/release/tidalite packaging/debian/build.sh [FOLDER]
#
# In: BINARY; VERSION (default: that of Cargo.toml); DEB_COMPRESSION (xz, zstd or gzip) and DEB_LEVEL;
# SOURCE_DATE_EPOCH (default: time of the last commit); DEPENDS (default: the packages of the binary's libraries, by
# dpkg-shlibdeps). Out: the package in FOLDER, by default the current one.
# The same inputs give the same bytes.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/../.." && pwd)
out=${1:-.}
[ -n "${BINARY:-}" ] || { echo "build.sh: set BINARY to the built tidalite" >&2; exit 1; }
BINARY=$(realpath "$BINARY")
VERSION=${VERSION:-$(sed -n 's/^version = "\(.*\)"$/\1/p' "$root/Cargo.toml" | head -n 1)}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
architecture=${ARCHITECTURE:-$(dpkg --print-architecture)}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree
doc=$tree/usr/share/doc/tidalite
umask 022

install_files() {
  BINARY=$BINARY PREFIX=/usr DESTDIR=$tree SYSCONFDIR=/etc UNITDIR=/lib/systemd/system \
    ZSHDIR=/usr/share/zsh/vendor-completions "$here/../install.sh" install
  # The postinst script creates the user.
  rm -r "$tree/usr/lib/sysusers.d"
  # The postinst script restricts the settings file to root and the group of the server.
  chmod 644 "$tree/etc/tidalite/tidalite.toml"
  rm "$doc/LICENSE"
  install -m 644 "$here/copyright" "$doc/copyright"
  mv "$doc/CHANGELOG.md" "$doc/changelog"
  {
    echo "tidalite ($VERSION) stable; urgency=medium"
    echo
    echo "  * Release $VERSION; its changes are in changelog.gz."
    echo
    echo " -- Tidalite maintainers <maintainers@tidalite.invalid>  $(date -u -R -d "@$SOURCE_DATE_EPOCH")"
  } >"$doc/changelog.Debian"
  # A version without a Debian revision is that of a native package, whose changelog is changelog.gz.
  case $VERSION in
    *-*) gzip -9n "$doc/changelog" "$doc/changelog.Debian" ;;
    *)
      mv "$doc/changelog" "$doc/NEWS.md"
      mv "$doc/changelog.Debian" "$doc/changelog"
      gzip -9n "$doc/changelog" "$doc/NEWS.md"
      ;;
  esac
  find "$tree/usr/share/man" -name '*.1' -exec gzip -9n {} + 2>/dev/null || true
}

# Libraries of the binary as package names with versions.
depends() {
  mkdir -p "$work/shlibs/debian"
  printf 'Source: tidalite\n\nPackage: tidalite\nArchitecture: any\n' >"$work/shlibs/debian/control"
  (cd "$work/shlibs" && dpkg-shlibdeps -O "$tree/usr/bin/tidalite") | sed -n 's/^shlibs:Depends=//p'
}

control_files() {
  mkdir "$tree/DEBIAN"
  size=$(du -k -s --exclude=DEBIAN "$tree" | cut -f 1)
  sed -e "s|@VERSION@|$VERSION|" -e "s|@ARCHITECTURE@|$architecture|" -e "s|@SIZE@|$size|" \
    -e "s|@DEPENDS@|${DEPENDS:-$(depends)}|" "$here/control.in" >"$tree/DEBIAN/control"
  echo /etc/tidalite/tidalite.toml >"$tree/DEBIAN/conffiles"
  for script in postinst prerm postrm; do
    install -m 755 "$here/$script" "$tree/DEBIAN/$script"
  done
  (cd "$tree" && find usr lib -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$tree/DEBIAN/md5sums"
}

install_files
control_files
find "$tree" -exec touch --no-dereference -d "@$SOURCE_DATE_EPOCH" {} +
mkdir -p "$out"
dpkg-deb --root-owner-group -Z"${DEB_COMPRESSION:-xz}" ${DEB_LEVEL:+-z"$DEB_LEVEL"} --build "$tree" \
  "$out/tidalite_${VERSION}_${architecture}.deb"
