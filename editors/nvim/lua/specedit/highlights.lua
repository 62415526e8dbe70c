--- The plugin's highlight groups: made from the colour scheme, for those that neither it nor the user defines.
local M = {}

local DARK, LIGHT = 0x101010, 0xffffff
local GREEN, RED = 0x2ea043, 0xf85149

--- Groups as they were defined here, to tell them from those that the scheme or the user defines.
---@type table<string, vim.api.keyset.get_hl_info>
local ours = {}

---@param name string
---@param definition vim.api.keyset.highlight
local function define(name, definition)
  local standing = vim.api.nvim_get_hl(0, { name = name })
  if vim.tbl_isempty(standing) or vim.deep_equal(standing, ours[name]) then
    vim.api.nvim_set_hl(0, name, definition)
    ours[name] = vim.api.nvim_get_hl(0, { name = name })
  end
end

---@param name string
---@return vim.api.keyset.get_hl_info
local function group(name)
  return vim.api.nvim_get_hl(0, { name = name, link = false })
end

--- A colour so much on the way from one to another.
---@param from integer
---@param to integer
---@param share number
local function mixed(from, to, share)
  local result = 0
  for _, shift in ipairs({ 16, 8, 0 }) do
    local one, other = bit.band(bit.rshift(from, shift), 0xff), bit.band(bit.rshift(to, shift), 0xff)
    result = result + bit.lshift(math.floor(one + (other - one) * share + 0.5), shift)
  end
  return result
end

--- Colours behind lines, faint enough for syntax colours to be read on them, as schemes' own for diffs often are not.
---@param name string
---@param colour integer
---@param diff string The group that counts where there are only the colours of a terminal.
local function define_background(name, colour, diff)
  local behind = group('Normal').bg or (vim.o.background == 'dark' and DARK or LIGHT)
  local terminal = group(diff)
  for suffix, share in pairs({ [''] = 0.18, Text = 0.42 }) do
    define(name .. suffix, {
      bg = mixed(behind, colour, share),
      ctermfg = terminal.ctermfg,
      ctermbg = terminal.ctermbg,
      cterm = suffix == 'Text' and { bold = true } or nil,
    })
  end
end

--- Define all of them; to be called again when the colours that they are made from change.
function M.define()
  define_background('SpecEditAdded', GREEN, 'DiffAdd')
  define_background('SpecEditRemoved', RED, 'DiffDelete')
  for name, link in pairs({
    SpecEditRegion = 'Special',
    SpecEditHint = 'Comment',
    SpecEditStale = 'DiagnosticWarn',
    SpecEditNextEdit = 'DiffText',
  }) do
    define(name, { link = link })
  end
end

return M
