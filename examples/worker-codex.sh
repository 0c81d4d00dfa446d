#!/bin/sh
# Codex as an agent, without a terminal. Each task is one run of it in this folder.
#
#   reeve worker --agent codex-1 --type codex --exec ./examples/worker-codex.sh \
#     --timeout 3600 --no-progress 900 --rollback 'git checkout -- . && git clean -fd'
#
# CODEX_ARGS adds arguments, such as: --model gpt-5-codex
set -eu

prompt="You are the agent $REEVE_AGENT_ID. Do the task below, given as JSON, and nothing beyond it.
Keep to its files_to_modify, and check your work against its acceptance_criteria.
Do not complete the task yourself: end with a short summary of what you changed. If it cannot be done, say why."

summary=$(mktemp)
trap 'rm -f "$summary"' EXIT

# The dash: the prompt comes on standard input, so that a long task meets no limit of the command line.
# shellcheck disable=SC2086
{ printf '%s\n\n' "$prompt"; cat; } |
  codex exec --sandbox workspace-write --skip-git-repo-check --output-last-message "$summary" ${CODEX_ARGS:-} - &&
  code=0 || code=$?

# Its last message becomes the notes of the result.
if command -v jq > /dev/null; then jq -Rs '{notes: .}' "$summary" > "$REEVE_RESULT_FILE"; fi
exit "$code"
