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

/// A C library whose calls fail, for the whole process: for the JVM, Gantry's bindings and the
/// stub of libcufile.
///
/// A process with the variables of [#environment] preloads the library. The library injects faults
/// into system calls on the files of one folder, on Unix sockets, memory files and connections
/// over IP; calls on the JVM's own files never fail.
@SuppressWarnings(
    "EnumOrdinal") // The library numbers kinds and losses in the order of these enums.
public final class FaultyLibc {
  private static final String PRELOAD = "LD_PRELOAD";
  private static final FunctionDescriptor ARM =
      FunctionDescriptor.ofVoid(JAVA_LONG, JAVA_LONG, JAVA_LONG);

  /// The functions that may fail; variants such as `open` and `open64` count as one function.
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

  /// The faults of a call, in the order of the library's numbers.
  public enum Kind {
    /// The call is not made, and fails with one of the errors that its manual page names.
    ERRNO,
    /// A read or write transfers fewer bytes than were requested.
    SHORT,
    /// The call takes up to 3 ms longer.
    DELAY
  }

  /// The part of the changes without a synchronisation that a power cut takes, in the order of the
  /// library's numbers.
  public enum Loss {
    EVERYTHING,
    DATA,
    ENTRIES
  }

  private final SymbolLookup library;

  private FaultyLibc(Path library) {
    this.library = SymbolLookup.libraryLookup(library, Arena.global());
  }

  /// Returns the environment variables of a process whose calls on `folder` may fail; skips the
  /// test if there is no C compiler.
  ///
  /// @param folder the real path of the folder, by which the process must name its files
  public static Map<String, String> environment(Path folder) {
    return Map.of(
        PRELOAD, NativeStubs.faultyLibc().toString(), "GANTRY_FAULTS_FOLDER", folder.toString());
  }

  /// Returns the library that this process has preloaded.
  public static FaultyLibc preloaded() {
    String path = System.getenv(PRELOAD);
    if (path == null) {
      throw new IllegalStateException(
          PRELOAD + " is not set: start this program by FaultyLibc.environment");
    }
    return new FaultyLibc(Path.of(path));
  }

  /// From now on, injects faults of these kinds into one call in `oneIn`.
  public void arm(long seed, long oneIn, Set<Kind> kinds) {
    long bits = kinds.stream().mapToLong(kind -> 1L << kind.ordinal()).sum();
    run("gantry_faults_arm", ARM, seed, oneIn, bits);
  }

  /// Stops injecting faults.
  public void disarm() {
    run("gantry_faults_arm", ARM, 0L, 0L, 0L);
  }

  /// Returns the number of injected faults since the start.
  public long injected() {
    return ask("gantry_faults_count", Kind.values().length);
  }

  /// Returns the number of injected faults of a kind since the start.
  public long injected(Kind kind) {
    return ask("gantry_faults_count", kind.ordinal());
  }

  /// Returns the number of injected faults into calls of a function since the start.
  public long injected(String function) {
    try (Arena arena = Arena.ofConfined()) {
      return (long)
          handle("gantry_faults_injected", FunctionDescriptor.of(JAVA_LONG, ADDRESS))
              .invoke(arena.allocateFrom(function));
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  /// Cuts the power before the `nth` change of the folder from now on, and ends the process; if
  /// `nth` is 0, only counts the changes. The power cut may lose changes from now on that are not
  /// synchronised.
  public void cut(long nth, Loss loss) {
    run(
        "gantry_faults_cut",
        FunctionDescriptor.ofVoid(JAVA_LONG, JAVA_LONG),
        nth,
        (long) loss.ordinal());
  }

  /// Cuts the power now. [#cut] must have begun to count before.
  public void cutNow(Loss loss) {
    run("gantry_faults_cut_now", FunctionDescriptor.ofVoid(JAVA_LONG), (long) loss.ordinal());
  }

  /// Returns the number of changes of the folder since the call of [#cut].
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
