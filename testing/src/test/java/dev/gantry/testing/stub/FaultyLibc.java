// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing.stub;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;

/// A C library that fails below a whole process: below the JVM, our bindings and the stub of libcufile alike.
///
/// A process that is started in [#environment] has it preloaded. Its faults are those of system calls on the files of
/// one folder, on Unix sockets, memory files and connections over IP; the JVM's own files never fail.
@SuppressWarnings(
    "EnumOrdinal") // The library numbers kinds and losses in the order of these enums.
public final class FaultyLibc {
  private static final String PRELOAD = "LD_PRELOAD";
  private static final FunctionDescriptor ARM =
      FunctionDescriptor.ofVoid(JAVA_LONG, JAVA_LONG, JAVA_LONG);

  /// The functions that fail; those of one kind, such as `open` and `open64`, count as one.
  public static final List<String> FUNCTIONS =
      List.of(
          "open",
          "close",
          "read",
          "pread",
          "preadv2",
          "write",
          "pwrite",
          "fsync",
          "ftruncate",
          "fallocate",
          "rename",
          "mkdir",
          "unlink",
          "rmdir",
          "statx",
          "mmap",
          "lock",
          "memfd_create",
          "socket",
          "connect",
          "accept4",
          "sendmsg",
          "recvmsg",
          "recv",
          "send");

  /// The faults of a call, in the order of the library's own numbers.
  public enum Kind {
    /// It is not made, and fails with one of the errors that its manual page names.
    ERRNO,
    /// A read or write moves fewer bytes than it was asked for.
    SHORT,
    /// It takes up to 3 ms longer.
    DELAY
  }

  /// The changes without a synchronisation that a power cut takes, in the order of the library's
  /// own numbers.
  public enum Loss {
    EVERYTHING,
    DATA,
    ENTRIES
  }

  private final SymbolLookup library;

  private FaultyLibc(Path library) {
    this.library = SymbolLookup.libraryLookup(library, Arena.global());
  }

  /// The environment of a process whose calls on what lies in `folder` may fail; the test is skipped where there is no
  /// C compiler.
  ///
  /// @param folder as its real path, by which the process must name its files
  public static Map<String, String> environment(Path folder) {
    return Map.of(
        PRELOAD, NativeStubs.faultyLibc().toString(), "GANTRY_FAULTS_FOLDER", folder.toString());
  }

  /// The library below this process.
  public static FaultyLibc preloaded() {
    String path = System.getenv(PRELOAD);
    if (path == null) {
      throw new IllegalStateException(
          PRELOAD + " is not set: start this program by FaultyLibc.environment");
    }
    return new FaultyLibc(Path.of(path));
  }

  /// From now on one call in `oneIn` gets a fault, if it is of one of these kinds.
  public void arm(long seed, long oneIn, Set<Kind> kinds) {
    long bits = kinds.stream().mapToLong(kind -> 1L << kind.ordinal()).sum();
    run("gantry_faults_arm", ARM, seed, oneIn, bits);
  }

  /// No call fails from now on.
  public void disarm() {
    run("gantry_faults_arm", ARM, 0L, 0L, 0L);
  }

  /// Faults that were injected since the start.
  public long injected() {
    return ask("gantry_faults_count", Kind.values().length);
  }

  /// Faults of a kind since the start.
  public long injected(Kind kind) {
    return ask("gantry_faults_count", kind.ordinal());
  }

  /// Faults of a function's calls since the start.
  public long injected(String function) {
    try (Arena arena = Arena.ofConfined()) {
      return (long)
          handle("gantry_faults_injected", FunctionDescriptor.of(JAVA_LONG, ADDRESS))
              .invoke(arena.allocateFrom(function));
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  /// Cuts the power before the `nth` change of the folder from now on, and ends the process; only
  /// counts changes where this is 0. Changes that are not synchronised from now on can be lost.
  public void cut(long nth, Loss loss) {
    run(
        "gantry_faults_cut",
        FunctionDescriptor.ofVoid(JAVA_LONG, JAVA_LONG),
        nth,
        (long) loss.ordinal());
  }

  /// Cuts the power now, after [#cut] has begun to count.
  public void cutNow(Loss loss) {
    run("gantry_faults_cut_now", FunctionDescriptor.ofVoid(JAVA_LONG), (long) loss.ordinal());
  }

  /// Changes of the folder since [#cut].
  public long changes() {
    try {
      return (long) handle("gantry_faults_changes", FunctionDescriptor.of(JAVA_LONG)).invoke();
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  private long ask(String function, long number) {
    try {
      return (long) handle(function, FunctionDescriptor.of(JAVA_LONG, JAVA_LONG)).invoke(number);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  private void run(String function, FunctionDescriptor prototype, Object... arguments) {
    try {
      handle(function, prototype).invokeWithArguments(arguments);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  private MethodHandle handle(String symbol, FunctionDescriptor prototype) {
    MemorySegment address = library.findOrThrow(symbol);
    return Linker.nativeLinker().downcallHandle(address, prototype);
  }
}
