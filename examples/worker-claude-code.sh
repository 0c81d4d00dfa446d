#!/bin/sh
# Claude Code as an agent, without a terminal. Each task is one run of it in this folder.
#
#   reeve worker --agent claude-1 --type claude-code --exec ./examples/worker-claude-code.sh \
#     --timeout 3600 --no-progress 900 --rollback 'git checkout -- . && git clean -fd'
#
# CLAUDE_ARGS adds arguments, such as: --model opus --max-turns 80
set -eu

prompt="You are the agent $REEVE_AGENT_ID. Do the task that standard input describes as JSON, and nothing beyond it.
Keep to its files_to_modify, and check your work against its acceptance_criteria.
Now and then say how far you are: reeve note $REEVE_TASK_ID 'what you did' --agent $REEVE_AGENT_ID
Do not complete the task yourself: end with a short summary of what you changed. If it cannot be done, say why."

answer=$(mktemp)
trap 'rm -f "$answer"' EXIT

# The task is on our standard input, which is handed on. Without a person to ask, what may be done is said beforehand.
# shellcheck disable=SC2086
claude -p "$prompt" --output-format json --permission-mode acceptEdits \
  --allowedTools 'Bash,Read,Edit,Write,Glob,Grep' ${CLAUDE_ARGS:-} > "$answer" && code=0 || code=$?

cat "$answer"
# Its summary becomes the notes of the result. An answer that says is_error is a failure, whatever the exit code.
if command -v jq > /dev/null && jq -e . "$answer" > /dev/null 2>&1; then
  jq '{notes: (.result // ""), session_id, total_cost_usd, num_turns}' "$answer" > "$REEVE_RESULT_FILE"
  if [ "$code" = 0 ] && [ "$(jq -r '.is_error // false' "$answer")" = true ]; then code=1; fi
fi
exit "$code"
