-- Time as the Redis server has it, so that no daemon's clock decides. Tests shift it.
local function now_us()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2] + ctx.shift_us
end

-- RFC 3339 in UTC with microseconds. Redis gives scripts no date functions: days are counted from 0000-03-01,
-- so that the leap day comes last in its year. A script writes several times of one day: the day is worked out once.
local iso_day, iso_date
local function iso_time(us)
  local micros = us % 1000000
  local seconds = (us - micros) / 1000000
  local of_day = seconds % 86400
  if seconds - of_day ~= iso_day then
    iso_day = seconds - of_day
    local days = iso_day / 86400 + 719468
    local day_of_era = days % 146097
    local of_years = day_of_era - (day_of_era - day_of_era % 1460) / 1460 + (day_of_era - day_of_era % 36524) / 36524
      - (day_of_era - day_of_era % 146096) / 146096
    local year_of_era = (of_years - of_years % 365) / 365
    local day_of_year = day_of_era - 365 * year_of_era - (year_of_era - year_of_era % 4) / 4 + (year_of_era - year_of_era % 100) / 100
    local fifths = 5 * day_of_year + 2
    local shifted_month = (fifths - fifths % 153) / 153
    local before = 153 * shifted_month + 2
    local day = day_of_year - (before - before % 5) / 5 + 1
    local month = shifted_month < 10 and shifted_month + 3 or shifted_month - 9
    local year = year_of_era + (days - day_of_era) / 146097 * 400 + (month <= 2 and 1 or 0)
    iso_date = string.format('%04d-%02d-%02dT', year, month, day)
  end
  local second = of_day % 60
  local minutes = (of_day - second) / 60
  local minute = minutes % 60
  return iso_date .. string.format('%02d:%02d:%02d.%06dZ', (minutes - minute) / 60, minute, second, micros)
end
