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
    local era = math.floor(days / 146097)
    local day_of_era = days - era * 146097
    local year_of_era = math.floor(
      (day_of_era - math.floor(day_of_era / 1460) + math.floor(day_of_era / 36524) - math.floor(day_of_era / 146096)) / 365)
    local day_of_year = day_of_era - (365 * year_of_era + math.floor(year_of_era / 4) - math.floor(year_of_era / 100))
    local shifted_month = math.floor((5 * day_of_year + 2) / 153)
    local day = day_of_year - math.floor((153 * shifted_month + 2) / 5) + 1
    local month = shifted_month < 10 and shifted_month + 3 or shifted_month - 9
    local year = year_of_era + era * 400 + (month <= 2 and 1 or 0)
    iso_date = string.format('%04d-%02d-%02dT', year, month, day)
  end
  local second = of_day % 60
  local minutes = (of_day - second) / 60
  local minute = minutes % 60
  return string.format('%s%02d:%02d:%02d.%06dZ', iso_date, (minutes - minute) / 60, minute, second, micros)
end
