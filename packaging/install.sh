#!/bin/sh
# Installs or removes the Tidalite server: binary, man pages, shell completions, systemd unit, settings file.
#
# usage: BINARY=target/release/tidalite packaging/install.sh install
#        packaging/install.sh uninstall
#
# Variables: PREFIX (/usr/local), DESTDIR (empty), SYSCONFDIR (/etc), UNITDIR, SYSUSERSDIR, ZSHDIR, STRIP (yes or
# no), WITH_DEBUG (yes installs the debug information as PREFIX/lib/debug/tidalite.debug).
# With an empty DESTDIR and as root, the user `tidalite` is created and systemd reads its units again.
# An existing settings file is kept. Removal keeps the settings, the data and the user.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
PREFIX=${PREFIX:-/usr/local}
DESTDIR=${DESTDIR:-}
SYSCONFDIR=${SYSCONFDIR:-/etc}
UNITDIR=${UNITDIR:-$PREFIX/lib/systemd/system}
SYSUSERSDIR=${SYSUSERSDIR:-$PREFIX/lib/sysusers.d}
ZSHDIR=${ZSHDIR:-$PREFIX/share/zsh/site-functions}
STRIP=${STRIP:-yes}
WITH_DEBUG=${WITH_DEBUG:-no}

bin=$DESTDIR$PREFIX/bin/tidalite
debug=$DESTDIR$PREFIX/lib/debug/tidalite.debug
man=$DESTDIR$PREFIX/share/man/man1
bash=$DESTDIR$PREFIX/share/bash-completion/completions/tidalite
zsh=$DESTDIR$ZSHDIR/_tidalite
fish=$DESTDIR$PREFIX/share/fish/vendor_completions.d/tidalite.fish
doc=$DESTDIR$PREFIX/share/doc/tidalite
unit=$DESTDIR$UNITDIR/tidalite.service
sysusers=$DESTDIR$SYSUSERSDIR/tidalite.conf
settings=$DESTDIR$SYSCONFDIR/tidalite/tidalite.toml

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

is_live() {
  [ -z "$DESTDIR" ] && [ "$(id -u)" = 0 ]
}

reload_systemd() {
  if is_live && [ -d /run/systemd/system ]; then
    systemctl daemon-reload
  fi
}

install_binary() {
  install -D -m 755 "$BINARY" "$bin.new"
  if [ "$WITH_DEBUG" = yes ]; then
    install -d -m 755 "$(dirname "$debug")"
    objcopy --only-keep-debug "$BINARY" "$debug"
    chmod 644 "$debug"
  fi
  if [ "$STRIP" = yes ]; then
    strip --strip-unneeded "$bin.new"
    if [ "$WITH_DEBUG" = yes ]; then
      objcopy --add-gnu-debuglink="$debug" "$bin.new"
    fi
  fi
  # A running server keeps its file: the rename replaces only the name.
  mv -f "$bin.new" "$bin"
}

# Older binaries know no `completions` and no `man`.
install_completion() {
  if "$BINARY" completions "$1" >"$work/completion" 2>/dev/null; then
    install -D -m 644 "$work/completion" "$2"
  else
    echo "install.sh: no completions for $1: the binary does not know the command"
  fi
}

install_man_pages() {
  mkdir "$work/man"
  if "$BINARY" man "$work/man" >/dev/null 2>&1; then
    install -d -m 755 "$man"
    install -m 644 "$work"/man/*.1 "$man"
  else
    echo "install.sh: no man pages: the binary does not know the command"
  fi
}

install_unit() {
  install -d -m 755 "$(dirname "$unit")"
  sed -e "s|@BINDIR@|$PREFIX/bin|g" -e "s|@SYSCONFDIR@|$SYSCONFDIR|g" "$here/systemd/tidalite.service.in" >"$unit"
  chmod 644 "$unit"
  install -D -m 644 "$here/systemd/sysusers.conf" "$sysusers"
}

install_docs() {
  install -d -m 755 "$doc"
  install -m 644 "$here/../CHANGELOG.md" "$here/../LICENSE" "$doc"
  cp -R "$here/../examples" "$doc/examples"
  chmod -R u=rwX,go=rX "$doc/examples"
}

create_user() {
  getent passwd tidalite >/dev/null && return
  if command -v systemd-sysusers >/dev/null; then
    systemd-sysusers "$sysusers"
  else
    useradd --system --user-group --home-dir /var/lib/tidalite --no-create-home --shell /usr/sbin/nologin tidalite
  fi
}

install_settings() {
  if [ -e "$settings" ]; then
    echo "install.sh: kept $settings"
    return
  fi
  install -D -m 640 "$here/tidalite.toml" "$settings"
  if is_live; then
    chgrp tidalite "$settings"
  fi
}

install_all() {
  [ -n "${BINARY:-}" ] || fail "set BINARY to the built tidalite"
  [ -x "$BINARY" ] || fail "no program at $BINARY: run make build as the user that builds"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  rm -rf "$doc/examples"
  install_binary
  install_completion bash "$bash"
  install_completion zsh "$zsh"
  install_completion fish "$fish"
  install_man_pages
  install_unit
  install_docs
  if is_live; then
    create_user
  fi
  install_settings
  reload_systemd
}

uninstall_all() {
  if is_live && [ -d /run/systemd/system ] && [ -e "$unit" ]; then
    systemctl disable --now tidalite.service
  fi
  rm -f "$bin" "$debug" "$man/tidalite.1" "$man"/tidalite-*.1 "$bash" "$zsh" "$fish" "$unit" "$sysusers"
  rm -rf "$doc"
  reload_systemd
  echo "install.sh: kept $SYSCONFDIR/tidalite, /var/lib/tidalite and the user tidalite"
}

case "${1:-}" in
  install) install_all ;;
  uninstall) uninstall_all ;;
  *) fail "usage: install.sh install|uninstall" ;;
esac
