import { expect, test } from 'vitest';
import { installCommand } from '../../src/redis/install-command.ts';

const APT = 'sudo apt-get update && sudo apt-get install -y --no-install-recommends redis-server';

const command = (osRelease: string, isRoot = false) => installCommand({ platform: 'linux', osRelease, isRoot })?.text;

test.each([
  ['Debian', 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_ID="12"', APT],
  ['Ubuntu', 'NAME="Ubuntu"\nVERSION_ID="24.04"\nID=ubuntu\nID_LIKE=debian', APT],
  ['Linux Mint', 'ID=linuxmint\nID_LIKE="ubuntu debian"\nVERSION_ID="22"', APT],
  ['Fedora', 'ID=fedora\nVERSION_ID=42', 'sudo dnf install -y valkey'],
  ['RHEL 9', 'ID="rhel"\nID_LIKE="fedora"\nVERSION_ID="9.4"', 'sudo dnf install -y redis'],
  ['Rocky 10', 'ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="10.0"', 'sudo dnf install -y valkey'],
  ['Amazon Linux', 'ID="amzn"\nID_LIKE="fedora"\nVERSION_ID="2023"', 'sudo dnf install -y valkey'],
  ['Alpine', 'ID=alpine\nVERSION_ID=3.20.3', 'sudo apk add redis'],
  ['Arch', 'ID=arch', 'sudo pacman -S --noconfirm valkey'],
  ['Manjaro', 'ID=manjaro\nID_LIKE=arch', 'sudo pacman -S --noconfirm valkey'],
  ['openSUSE', 'ID="opensuse-leap"\nID_LIKE="suse opensuse"', 'sudo zypper --non-interactive install redis'],
])('names the command that installs a server on %s', (_, osRelease, expected) => {
  expect(command(osRelease)).toBe(expected);
});

test('leaves sudo out for root', () => {
  expect(command('ID=alpine', true)).toBe('apk add redis');
});

test('uses brew on a Mac, and never as root', () => {
  expect(installCommand({ platform: 'darwin', osRelease: '', isRoot: true })?.text).toBe('brew install redis');
});

test('names no command on a system it does not know', () => {
  expect(command('ID=nixos')).toBeUndefined();
  expect(command('')).toBeUndefined();
});
