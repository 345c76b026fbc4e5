#!/bin/sh
# Prints the names of the targets.
cd "$(dirname "$0")" && sed -n 's/^path = ".*\/\([a-z_]*\)\.rs"$/\1/p' Cargo.toml | grep -vx seeds
