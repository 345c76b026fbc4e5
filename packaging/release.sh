#!/bin/bash
# Builds the files of a release from a tag.
#
# usage: packaging/release.sh v0.1.0
#
# In: a tag v + the version in Cargo.toml, and a section `## VERSION` in CHANGELOG.md. BINARY: a program that was built
# from the tag; without it, this script builds the program. OUT: the folder of the results, absent or empty (dist/VERSION). URL and
# HOMEPAGE: addresses for the Homebrew formula.
# Out: archives of sources, program and debug information, Debian package, Kubernetes manifest, Homebrew formula,
# software bill of materials, upgrade notes, SHA256SUMS; and an image `tidalite:VERSION` where Docker runs.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
tag=${1:?usage: release.sh TAG}
version=${tag#v}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022

fail() {
  echo "release.sh: $*" >&2
  exit 1
}

SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct "$tag^{commit}")
export SOURCE_DATE_EPOCH
out=${OUT:-$root/dist/$version}
name=tidalite-$version
machine=linux-$(uname -m)
sources=$work/$name

# The same tree gives the same bytes.
pack() { # FILE FOLDER…: folders of $work
  local file=$1
  shift
  tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -c "$@" | gzip -n >"$out/$file"
}

changes() {
  awk -v version="$version" '
    /^## / { is_in = $2 == version || $2 == "[" version "]"; next }
    is_in { print }
  ' "$sources/CHANGELOG.md"
}

check_sources() {
  local found
  found=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$sources/Cargo.toml" | head -n 1)
  [ "$found" = "$version" ] || fail "tag $tag, but Cargo.toml has version $found"
  [ -n "$(changes)" ] || fail "CHANGELOG.md has no section ## $version"
}

build_program() {
  if [ -z "${BINARY:-}" ]; then
    if [ -f "$sources/console/package.json" ]; then
      npm --prefix "$sources/console" ci
      npm --prefix "$sources/console" run build
    fi
    export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HOME/.cache/tidalite/target}
    (cd "$sources" && cargo build --release --locked --workspace --bin tidalite)
    BINARY=$CARGO_TARGET_DIR/release/tidalite
  fi
  [ "$("$BINARY" --version)" = "tidalite $version" ] || fail "$BINARY is not version $version"
}

# A folder from which packaging/install.sh installs without a build.
pack_program() {
  local folder=$work/program/$name
  mkdir -p "$folder/bin" "$work/debug/$name"
  cp -R "$sources"/{README.md,CHANGELOG.md,LICENSE,docs,examples,packaging} "$folder"
  objcopy --only-keep-debug "$BINARY" "$work/debug/$name/tidalite.debug"
  objcopy --strip-unneeded --add-gnu-debuglink="$work/debug/$name/tidalite.debug" "$BINARY" "$folder/bin/tidalite"
  chmod 755 "$folder/bin/tidalite"
  pack "$name-$machine.tar.gz" -C program "$name"
  pack "$name-$machine-debug.tar.gz" -C debug "$name"
}

write_bill() {
  local npm=()
  if [ -f "$sources/console/package-lock.json" ]; then
    npm=(--npm "$sources/console/package-lock.json")
  fi
  python3 "$sources/packaging/sbom.py" --version "$version" "${npm[@]}" "$sources/Cargo.lock" >"$out/$name.cdx.json"
}

write_texts() {
  local sum manifest=$sources/packaging/kubernetes
  { cat "$manifest/service.yaml"; echo ---; cat "$manifest/statefulset.yaml"; } |
    sed "s|image: tidalite:latest|image: tidalite:$version|" >"$out/$name-kubernetes.yaml"
  sum=$(sha256sum <"$out/$name-source.tar.gz" | cut -d ' ' -f 1)
  sed -e "s|@URL@|${URL:-https://example.com/$name-source.tar.gz}|" -e "s|@SHA256@|$sum|" \
    -e "s|@HOMEPAGE@|${HOMEPAGE:-https://example.com/}|" "$sources/packaging/homebrew/tidalite.rb.in" >"$out/tidalite.rb"
  changes >"$work/changes"
  sed -e "/@CHANGES@/{r $work/changes
    d}" -e "s|@VERSION@|$version|g" "$sources/packaging/upgrade-notes.md.in" >"$out/$name-notes.md"
}

build_image() {
  if command -v docker >/dev/null && docker info >/dev/null 2>&1; then
    docker build -f "$sources/packaging/docker/Dockerfile" -t "tidalite:$version" "$sources"
  else
    echo "release.sh: no image: Docker does not run here"
  fi
}

mkdir -p "$sources" "$out"
[ -z "$(ls -A "$out")" ] || fail "$out is not empty"
git -C "$root" archive "$tag" | tar -x -C "$sources"
check_sources
pack "$name-source.tar.gz" "$name"
build_program
pack_program
BINARY=$BINARY VERSION=$version "$sources/packaging/debian/build.sh" "$out"
write_bill
write_texts
build_image
(cd "$out" && sha256sum -- * >"$work/sums" && mv "$work/sums" SHA256SUMS)
echo "release.sh: $out"
