// SPDX-License-Identifier: Apache-2.0
package dev.gantry.fuzz;

import com.sun.management.ThreadMXBean;
import dev.gantry.core.Failure;
import dev.gantry.core.GantryException;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.session.GantrySession;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.Set;
import java.util.function.Supplier;

/// The rules for a parser on any input: it returns a value, or throws one of the documented errors
/// with a message of one line; it takes little memory beyond the input's size; and it holds no
/// resource afterwards. A search also limits its time.
final class Check {
  /// The bytes that a parser may allocate for any input, buffers and image decoders included.
  private static final long CONSTANT_BYTES = 48L << 20;

  /// The bytes that a parser may allocate in total for each byte of its input. Compressed bytes
  /// grow by a factor of up to 1,032.
  private static final long GROWTH = 3000;

  /// The CPU time that a parser may take. Wall-clock time would depend on the load of the machine.
  private static final long CPU_NANOS = 5_000_000_000L;

  /// The errors for files that an input names and that do not exist.
  private static final Set<String> NO_FILE = Set.of("ENOENT", "EISDIR", "ENOTDIR", "ENAMETOOLONG");

  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  private Check() {}

  /// Gives an input to a parser unchanged, and, if its checksums are wrong, again with correct
  /// ones.
  ///
  /// @return whether the parser accepted the input at least once
  /// @throws AssertionError if the parser breaks a rule
  static boolean run(Target target, byte[] input) {
    boolean taken = parse(target, input);
    byte[] mended = target.mended().apply(input.clone());
    return (!Arrays.equals(mended, input) && parse(target, mended)) || taken;
  }

  private static boolean parse(Target target, byte[] input) {
    LiveResources.forgetMostUsed();
    long start = THREADS.getCurrentThreadCpuTime();
    long before = THREADS.getCurrentThreadAllocatedBytes();
    boolean taken = verdict(target, input.clone());
    long allocated = THREADS.getCurrentThreadAllocatedBytes() - before;
    long nanos = THREADS.getCurrentThreadCpuTime() - start;
    require(
        nanos <= CPU_NANOS,
        () -> "it took %,d ms for %,d bytes".formatted(nanos / 1_000_000, input.length));
    long bound = CONSTANT_BYTES + GROWTH * input.length;
    if (allocated > bound) {
      // The first call also loads classes, so only the second call counts.
      before = THREADS.getCurrentThreadAllocatedBytes();
      boolean _ = verdict(target, input.clone());
      long again = THREADS.getCurrentThreadAllocatedBytes() - before;
      require(
          again <= bound, () -> "it allocated %,d bytes for %,d".formatted(again, input.length));
    }
    long slabs = LiveResources.mostUsed().hostBytes();
    require(
        slabs <= bound, () -> "its slabs took %,d bytes for %,d".formatted(slabs, input.length));
    return taken;
  }

  private static boolean verdict(Target target, byte[] input) {
    try {
      target.parser().parse(input);
      return true;
    } catch (MalformedFileException refusal) {
      require(
          refusal.kind().matches("[a-z0-9]+(-[a-z0-9]+)*"),
          () -> "the kind is '%s'".formatted(refusal.kind()));
      require(refusal.offset() >= 0, () -> "the offset is %d".formatted(refusal.offset()));
      requireOneLine(refusal);
    } catch (MisuseException refusal) {
      requireOneLine(refusal);
    } catch (TransferException refusal) {
      boolean known =
          switch (refusal.failure()) {
            case Failure.Errno(_, String name, _) -> NO_FILE.contains(name);
            case Failure.Malformed _, Failure.Remote _ -> true;
            default -> false;
          };
      if (!known) {
        throw new AssertionError("not an error of an input", refusal);
      }
      requireOneLine(refusal);
    } catch (Exception refusal) {
      if (target.refusals().stream().noneMatch(known -> known.isInstance(refusal))) {
        throw new AssertionError("an exception that is no verdict: " + refusal, refusal);
      }
    }
    return false;
  }

  private static void requireOneLine(GantryException refusal) {
    String text = String.valueOf(refusal.getMessage());
    require(
        !text.isBlank() && text.lines().count() == 1, () -> "the message is '%s'".formatted(text));
  }

  /// Requires that the process holds only resources that are kept for the next load.
  static void requireNothingHeld() {
    GantrySession.shared().freeIdle();
    LiveResources.Snapshot held = LiveResources.snapshot();
    require(held.equals(LiveResources.Snapshot.NOTHING), () -> "it holds %s".formatted(held));
  }

  private static void require(boolean right, Supplier<String> otherwise) {
    if (!right) {
      throw new AssertionError(otherwise.get());
    }
  }
}
