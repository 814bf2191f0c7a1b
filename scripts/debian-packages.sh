#!/bin/bash
# Install the Debian packages of some sets of debian-packages.txt that are missing.
# Usage: debian-packages.sh venv|build|deb|real...
# Without root, or without apt, it changes nothing and says what to install.
set -euo pipefail

list="$(dirname "$0")/debian-packages.txt"

wanted() {
    awk -v sets=" $* " '!/^#/ && index(sets, " " $2 " ") { print $1 }' "$list"
}

installed() {
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing() {
    local package
    for package in $(wanted "$@"); do
        installed "$package" || echo "$package"
    done
}

install() {
    DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes apt-get -qq -y -o Dpkg::Use-Pty=0 \
        install --no-install-recommends "$@" </dev/null
}

refuse() {
    echo "$1: install these Debian packages and try again: ${packages[*]}" >&2
    exit 1
}

main() {
    if ! command -v dpkg-query >/dev/null; then
        return 0  # another system: the programs themselves are looked for later
    fi
    mapfile -t packages < <(missing "$@")
    [ "${#packages[@]}" -gt 0 ] || return 0
    [ "$(id -u)" -eq 0 ] || refuse "This needs root"
    echo "Installing Debian packages: ${packages[*]}"
    # The machine's package lists may be absent or old: renew them only if they fail us.
    install "${packages[@]}" >/dev/null 2>&1 && return 0
    apt-get -qq update || refuse "apt-get update failed"
    install "${packages[@]}" >/dev/null || refuse "apt-get install failed"
}

main "$@"
