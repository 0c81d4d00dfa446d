const DAY = 86_400_000;

/** Dates without a time are days in UTC, so that no clock change moves them. */
export function run({ from, to, amount = 0, unit = 'days' }) {
  const start = dayOf(from);
  if (to === undefined) return { date: textOf(add(start, amount, unit)) };
  const end = dayOf(to);
  const days = (end - start) / DAY;
  return { days, weeks: Math.trunc(days / 7), working_days: workingDays(start, end) };
}

function dayOf(text) {
  const day = Date.parse(`${text}T00:00:00Z`);
  if (Number.isNaN(day) || textOf(day) !== text) throw new Error(`${text} is not a date`);
  return day;
}

const textOf = (day) => new Date(day).toISOString().slice(0, 10);
const isWorkingDay = (day) => new Date(day).getUTCDay() % 6 !== 0;

function add(day, amount, unit) {
  if (unit !== 'working_days') return day + amount * DAY * (unit === 'weeks' ? 7 : 1);
  const direction = Math.sign(amount);
  let moved = day;
  for (let left = Math.abs(amount); left > 0; ) {
    moved += direction * DAY;
    if (isWorkingDay(moved)) left -= 1;
  }
  return moved;
}

function workingDays(start, end) {
  const [first, last] = start <= end ? [start, end] : [end, start];
  let count = 0;
  for (let day = first; day < last; day += DAY) if (isWorkingDay(day)) count += 1;
  return start <= end ? count : -count;
}
