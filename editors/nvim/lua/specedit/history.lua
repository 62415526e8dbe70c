--- The instructions that were given, kept over restarts in a file that only the user may read.
local config = require('specedit.config')

local M = {}

local MOST_KEPT = 100
local OWN_FILE, OWN_DIRECTORY = tonumber('600', 8), tonumber('700', 8)

---@return string
local function file()
  return vim.fs.joinpath(vim.fn.stdpath('state') --[[@as string]], 'specedit', 'instructions')
end

--- All, the oldest first.
---@return string[]
function M.read()
  if not config.options.prompt.history or vim.fn.filereadable(file()) == 0 then
    return {}
  end
  return vim.fn.readfile(file())
end

---@param lines string[]
---@return string? # What went wrong.
local function write(lines)
  vim.fn.mkdir(vim.fs.dirname(file()), 'p', OWN_DIRECTORY)
  -- Written beside it and moved: another Neovim may be reading, or this one be ended.
  local beside = ('%s.%d'):format(file(), vim.uv.os_getpid())
  local handle, err = vim.uv.fs_open(beside, 'w', OWN_FILE)
  if not handle then
    return err
  end
  local _, failure = vim.uv.fs_write(handle, table.concat(lines, '\n') .. '\n')
  vim.uv.fs_close(handle)
  if not failure then
    _, failure = vim.uv.fs_rename(beside, file())
  end
  return failure
end

--- Keep an instruction as the latest one; the same one from before is forgotten.
---@param instruction string
function M.add(instruction)
  if not config.options.prompt.history then
    return
  end
  local kept = vim.tbl_filter(function(line)
    return line ~= instruction and line ~= ''
  end, M.read())
  table.insert(kept, instruction)
  local failure = write(vim.list_slice(kept, math.max(1, #kept - MOST_KEPT + 1)))
  if failure then
    local fix = 'Mend that, or switch it off with prompt = { history = false }.'
    require('specedit.server').notify(('the instruction is not kept: %s. %s'):format(failure, fix), vim.log.levels.WARN)
  end
end

return M
