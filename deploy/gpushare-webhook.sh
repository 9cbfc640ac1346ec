#!/bin/sh
# Prints gpushare-webhook.yaml with a new certificate for ten years; the key goes into the Secret and nowhere else.
#   sh deploy/gpushare-webhook.sh | kubectl apply -f -
# Run it again for another certificate: the webhook reads it when the Secret's files change, without a restart.
set -eu
name=fairlead-admission-webhook
host=$name.fairlead-system.svc
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
umask 077
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 -subj "/CN=$host" \
  -addext "subjectAltName=DNS:$host" -keyout "$folder/tls.key" -out "$folder/tls.crt" 2>"$folder/log" || { cat "$folder/log" >&2; exit 1; }
certificate=$(openssl base64 -A -in "$folder/tls.crt")
cat <<END
apiVersion: v1
kind: Secret
type: kubernetes.io/tls
metadata:
  name: $name
  namespace: fairlead-system
data:
  tls.crt: $certificate
  tls.key: $(openssl base64 -A -in "$folder/tls.key")
---
END
sed "s|caBundle: \"\"|caBundle: $certificate|" "$(dirname "$0")/gpushare-webhook.yaml"
