"""Compiles every script of this folder, so that a slip is seen without PyTorch. Prints the scripts that are no Python; exits 1 then."""
import pathlib
import sys


def main():
    bad = 0
    for path in sorted(pathlib.Path(__file__).parent.rglob("*.py")):
        try:
            compile(path.read_text(encoding="utf-8"), str(path), "exec")
        except SyntaxError as error:
            bad = 1
            print(f"{path}: {error}")
    return bad


if __name__ == "__main__":
    sys.exit(main())
