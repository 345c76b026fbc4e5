#!/bin/bash
# Health check of the image: exit code 0 if GET /health on the health port answers 200, else 1.
#
# The image has no HTTP client, so the request goes through a socket of bash.
port=${TIDALITE_HEALTH_LISTEN##*:}
exec 3<>"/dev/tcp/127.0.0.1/${port:-9003}" || exit 1
printf 'GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3
read -r -t 5 _ status _ <&3
[ "$status" = 200 ] || exit 1
