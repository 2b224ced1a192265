# Sourced by scripts that start a server.

# A port that nobody listens on, as far as one can know; below those that the
# system gives to connections.
free_port() {
  local port
  while port=$((20000 + RANDOM % 12000)); (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
  echo "$port"
}
