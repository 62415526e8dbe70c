--- Notifications on their way to the rewrite that they are about, which may be known only after they came.
local sessions = require('specedit.sessions')

local M = {}

--- While answers are waited for, what was told before them of rewrites that they may be about: by client, then by id.
---@type table<integer, { awaited: integer, told: table<string, fun(session: specedit.Session)[]> }>
local early = {}

--- An answer that begins a rewrite is waited for.
---@param client_id integer
function M.await(client_id)
  early[client_id] = early[client_id] or { awaited = 0, told = {} }
  early[client_id].awaited = early[client_id].awaited + 1
end

--- The answer has come, or none will: what waited for this rewrite is handed to it by the function that is returned.
---@param client_id integer
---@return fun(session: specedit.Session)
function M.answered(client_id)
  local waiting = early[client_id]
  waiting.awaited = waiting.awaited - 1
  if waiting.awaited == 0 then
    early[client_id] = nil
  end
  return function(session)
    for _, tell in ipairs(waiting.told[session.id] or {}) do
      tell(session)
    end
  end
end

--- Hand a notification to its session, if it is one; before the answer that says which one that is, it waits.
---@param params any
---@param ctx lsp.HandlerContext
---@param holds table<string, type>
---@param run fun(session: specedit.Session, params: table)
function M.deliver(params, ctx, holds, run)
  if type(params) ~= 'table' or type(params.session) ~= 'string' then
    return
  end
  for name, kind in pairs(holds) do
    if type(params[name]) ~= kind then
      return
    end
  end
  local session = sessions.find(ctx.client_id, params.session)
  if session then
    run(session, params)
    return
  end
  local waiting = early[ctx.client_id]
  if waiting then
    local told = waiting.told[params.session] or {}
    waiting.told[params.session] = told
    table.insert(told, function(begun)
      if sessions.find(ctx.client_id, params.session) then
        run(begun, params)
      end
    end)
  end
end

return M
