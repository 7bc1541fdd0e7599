// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing;

import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import java.lang.foreign.MemorySegment;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntPredicate;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/// The kernel's file calls, which fail at chosen calls of chosen functions.
///
/// The calls of each function are counted from 1 over all threads, including failed calls. If a
/// call has several faults, the first one that was set takes effect, and so does every [After]
/// before it. Thread-safe.
public final class FaultyFileCalls extends ForwardingFileCalls {
  /// A call that can be made to fail.
  public enum Function {
    OPEN,
    CLOSE,
    PREAD,
    PWRITE,
    FTRUNCATE,
    FALLOCATE,
    FSYNC,
    RENAME,
    MKDIR,
    UNLINK,
    RMDIR,
    STAT,
    CACHED_BYTES,
    MAPPED_BYTES,
    FILE_SYSTEM,
    MAX_DESCRIPTORS,
    PREAD_NO_WAIT,
    LOCK
  }

  /// A fault of a call.
  public sealed interface Fault {}

  /// The call is not made, and fails with this `errno`. A `close` is made nevertheless, as Linux
  /// does.
  public record Fails(Errno errno) implements Fault {}

  /// The call is not made, and returns this number. For calls that return a number.
  public record Answers(long number) implements Fault {}

  /// A read or write of more than `most` bytes becomes one of `most` bytes.
  public record Shortens(long most) implements Fault {}

  /// A read or write is made completely, but returns at most `most`. A direct read that ends in
  /// mid-block may return such a count, which the kernel would refuse as a length.
  public record Returns(long most) implements Fault {}

  /// Runs `action` on the calling thread just before the call.
  public record After(Runnable action) implements Fault {}

  private record Rule(Function function, IntPredicate calls, Fault fault) {}

  /// An action that runs before one call, counted over all functions.
  private record StepAction(int number, Runnable action) {}

  private volatile @Nullable StepAction between;

  private final List<Rule> rules = new CopyOnWriteArrayList<>();
  private final AtomicInteger steps = new AtomicInteger();
  private final Map<Function, AtomicInteger> counts = new EnumMap<>(Function.class);
  private final AtomicInteger faults = new AtomicInteger();

  public FaultyFileCalls(FileCalls real) {
    super(real);
    for (Function function : Function.values()) {
      counts.put(function, new AtomicInteger());
    }
  }

  /// Adds a fault to call `number` of `function`; `number` starts at 1.
  public FaultyFileCalls at(Function function, int number, Fault fault) {
    rules.add(new Rule(function, call -> call == number, fault));
    return this;
  }

  /// Adds a fault to every call of `function` from `number` on.
  public FaultyFileCalls from(Function function, int number, Fault fault) {
    rules.add(new Rule(function, call -> call >= number, fault));
    return this;
  }

  /// Adds a fault to about one call of `function` in `oneIn`. The seed determines the calls,
  /// whichever threads make them.
  public FaultyFileCalls seeded(Function function, long seed, int oneIn, Fault fault) {
    long salt = mix(seed + rules.size());
    rules.add(
        new Rule(function, call -> Long.remainderUnsigned(mix(salt + call), oneIn) == 0, fault));
    return this;
  }

  /// Runs `action` just before call `number`, counted over all functions.
  public FaultyFileCalls before(int number, Runnable action) {
    between = new StepAction(number, action);
    return this;
  }

  /// Returns the number of calls of all functions.
  public int steps() {
    return steps.get();
  }

  /// Returns the number of calls of `function`.
  public int count(Function function) {
    return counts.get(function).get();
  }

  /// Returns the number of calls that had a fault.
  public int faults() {
    return faults.get();
  }

  @Override
  public int close(int fd) {
    Fault fault = next(Function.CLOSE);
    int result = super.close(fd);
    return fault instanceof Fails fails ? code(fails) : result;
  }

  @Override
  public long pread(int fd, MemorySegment target, long length, long offset) {
    Fault fault = next(Function.PREAD);
    return fault instanceof Fails fails
        ? code(fails)
        : returned(fault, super.pread(fd, target, shortened(fault, length), offset));
  }

  @Override
  public long pwrite(int fd, MemorySegment source, long length, long offset) {
    Fault fault = next(Function.PWRITE);
    return fault instanceof Fails fails
        ? code(fails)
        : returned(fault, super.pwrite(fd, source, shortened(fault, length), offset));
  }

  @Override
  public StatResult stat(int fd) {
    Fault fault = next(Function.STAT);
    return fault instanceof Fails fails ? StatResult.failed(code(fails)) : super.stat(fd);
  }

  @Override
  long call(Function function, LongSupplier call) {
    Fault fault = next(function);
    return switch (fault) {
      case Fails fails -> code(fails);
      case Answers(long number) -> number;
      case null, default -> call.getAsLong();
    };
  }

  @Override
  public long preadNoWait(int fd, MemorySegment target, long length, long offset) {
    Fault fault = next(Function.PREAD_NO_WAIT);
    return fault instanceof Fails fails
        ? code(fails)
        : returned(fault, super.preadNoWait(fd, target, shortened(fault, length), offset));
  }

  private @Nullable Fault next(Function function) {
    StepAction step = between;
    if (steps.incrementAndGet() == (step == null ? 0 : step.number)) {
      step.action.run();
    }
    int call = counts.get(function).incrementAndGet();
    for (Rule rule : rules) {
      if (rule.function == function && rule.calls.test(call)) {
        if (rule.fault instanceof After(Runnable action)) {
          action.run();
        } else {
          faults.incrementAndGet();
          return rule.fault;
        }
      }
    }
    return null;
  }

  private static int code(Fails fails) {
    return -fails.errno.code();
  }

  private static long shortened(@Nullable Fault fault, long length) {
    return fault instanceof Shortens(long most) ? Math.min(most, length) : length;
  }

  private static long returned(@Nullable Fault fault, long result) {
    return fault instanceof Returns(long most) ? Math.min(most, result) : result;
  }

  /// Computes Stafford's variant 13 of the 64-bit finalizer, as `SplittableRandom` does.
  private static long mix(long z) {
    long mixed = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
    mixed = (mixed ^ (mixed >>> 27)) * 0x94d049bb133111ebL;
    return mixed ^ (mixed >>> 31);
  }
}
