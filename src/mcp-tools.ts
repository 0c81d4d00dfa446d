/**
 * Every tool that reeve offers to models, or has set aside to. An operation takes its tool's name from here, and no asset
 * may call itself so: a model that has both would not know which of them it calls.
 */
export const MCP_TOOLS: readonly string[] = [
  'acquire_lock',
  'check_change',
  'claim_task',
  'decide_approval',
  'explain',
  'find_assets',
  'find_tasks',
  'finish_task',
  'get_asset',
  'get_briefing',
  'get_task',
  'list_approvals',
  'release_lock',
  'report_progress',
  'submit_change',
];

/** Models mix up small and capital letters, and dashes and underscores. */
export const isMcpTool = (name: string): boolean => MCP_TOOLS.includes(name.toLowerCase().replaceAll('-', '_'));
