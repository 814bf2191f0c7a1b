#!/bin/bash
# Put Debian packages into an apt repository, and sign it with a key of the caller's gpg.
# Usage: make-repo.sh DIRECTORY KEY PACKAGE...
# Packages that are there already stay, so that a machine finds the version before.
set -euo pipefail

SUITE=bookworm

refuse() {
    echo "make-repo.sh: $1" >&2
    exit 1
}

# Copy packages to the pool. Whoever has fetched one trusts that its version is that.
add() {
    local pool=$1 package
    shift
    for package; do
        [ -f "$package" ] || refuse "there is no package $package"
        if [ -e "$pool/$(basename "$package")" ] && ! cmp -s "$package" "$pool/$(basename "$package")"; then
            refuse "$(basename "$package") is there with another content: raise the version"
        fi
    done
    mkdir -p "$pool"
    cp "$@" "$pool/"
}

# Write the lists of what is in the pool, and what signs them, to a directory.
list() {
    local lists=$1 key=$2
    mkdir -p "$lists/main/binary-amd64"
    apt-ftparchive --arch amd64 packages pool >"$lists/main/binary-amd64/Packages"
    gzip -9nk "$lists/main/binary-amd64/Packages"
    apt-ftparchive -o APT::FTPArchive::Release::Origin=Moorage \
        -o APT::FTPArchive::Release::Label=Moorage \
        -o APT::FTPArchive::Release::Suite="$SUITE" \
        -o APT::FTPArchive::Release::Codename="$SUITE" \
        -o APT::FTPArchive::Release::Architectures=amd64 \
        -o APT::FTPArchive::Release::Components=main \
        release "$lists" >"$lists.release"
    mv "$lists.release" "$lists/Release"
    gpg --batch --yes --local-user "$key" --armor --detach-sign -o "$lists/Release.gpg" "$lists/Release"
    gpg --batch --yes --local-user "$key" --clear-sign -o "$lists/InRelease" "$lists/Release"
}

main() {
    [ $# -ge 3 ] || refuse "which directory, which key, which packages?"
    local target=$1 key=$2
    shift 2
    [ -n "$key" ] || refuse "no key is named: KEY=NAME, one of gpg --list-secret-keys"
    gpg --batch --list-secret-keys "$key" >/dev/null 2>&1 || refuse "gpg has no secret key '$key'"
    add "$target/pool" "$@"
    cd "$target"
    rm -rf dists.new && mkdir dists.new
    list "dists.new/$SUITE" "$key"
    rm -rf dists && mv dists.new dists
    gpg --batch --armor --export "$key" >moorage.asc
}

main "$@"
