--- What the user presses for something: their own key map, else the command.
local M = {}

---@param bufnr integer
---@return table[]
local function maps(bufnr)
  return vim.list_extend(vim.api.nvim_buf_get_keymap(bufnr, 'n'), vim.api.nvim_get_keymap('n'))
end

--- The shortest key map in normal mode that does what `<Plug>(specedit-NAME)` does, else the command that does.
---@param bufnr integer
---@param name string The part of the <Plug> after specedit-, such as 'accept-all'.
---@param command string
---@return string
function M.of(bufnr, name, command)
  local plug, best = ('<Plug>(specedit-%s)'):format(name), nil
  for _, map in ipairs(maps(bufnr)) do
    local leads = map.lhs ~= plug and map.rhs and (map.rhs:find(plug, 1, true) or map.rhs:find(command .. '<', 1, true))
    local shown = leads and vim.fn.keytrans(map.lhsraw or map.lhs)
    if shown and (not best or #shown < #best) then
      best = shown
    end
  end
  return best or (':' .. command)
end

return M
