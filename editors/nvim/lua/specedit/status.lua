--- How the engine is, for the statusline, and told once where it is in trouble.
local M = {}

local STATES = { loading = true, ready = true, busy = true, error = true }

---@class specedit.Status
---@field state 'loading'|'ready'|'busy'|'error'
---@field message string what it waits for, does or suffers from
---@field percent? integer of loading
---@field fix string what to do about an error
---@field model string

---@type specedit.Status?
local status
---@type string?
local told

---@param value any
---@return string
local function text(value)
  return type(value) == 'string' and value or ''
end

--- `specedit/status`: how the engine is now.
---@param params table
---@param _ctx lsp.HandlerContext
function M.on_status(params, _ctx)
  if type(params) ~= 'table' or not STATES[params.state] then
    return
  end
  status = {
    state = params.state,
    message = text(params.message),
    percent = type(params.percent) == 'number' and math.floor(params.percent) or nil,
    fix = text(params.fix),
    model = text(params.model),
  }
  if status.state == 'ready' then
    told = nil
  elseif status.state == 'error' then
    local said = status.message .. '.' .. (status.fix ~= '' and ' ' .. status.fix or '')
    if said ~= told then
      told = said
      require('specedit.server').notify(said, vim.log.levels.ERROR)
    end
  end
  vim.api.nvim_exec_autocmds('User', { pattern = 'SpecEditStatus', modeline = false, data = M.current() })
  vim.cmd.redrawstatus({ bang = true })
end

--- How the engine is; nil before it was told, and where no server runs.
---@return specedit.Status?
function M.current()
  local runs = #vim.lsp.get_clients({ name = 'specedit' }) > 0
  return runs and vim.deepcopy(status) or nil
end

--- For the statusline: 'specedit' where the engine is ready, 'specedit 42%' while it loads, 'specedit …' while it
--- works, 'specedit: error'; empty where no server runs.
---@return string
function M.component()
  local current = M.current()
  if not current then
    return ''
  elseif current.state == 'loading' then
    return current.percent and ('specedit %d%%'):format(current.percent) or 'specedit loading'
  elseif current.state == 'busy' then
    return 'specedit …'
  end
  return current.state == 'error' and 'specedit: error' or 'specedit'
end

return M
