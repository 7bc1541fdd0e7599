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
import java.util.ArrayList;
import java.util.List;

/// The controls and counters of a stub library. Function names are those of the C functions,
/// without `_v2`.
public final class StubControls {
  private final SymbolLookup library;

  private StubControls(String library) {
    this.library = SymbolLookup.libraryLookup(library, Arena.global());
  }

  /// Returns the controls of the stub of libcuda, in a JVM that [StubbedJvm] runs.
  public static StubControls cuda() {
    return new StubControls("libcuda.so.1");
  }

  /// Returns the controls of the stub of libcufile, in a JVM that [StubbedJvm] runs.
  public static StubControls cuFile() {
    return new StubControls("libcufile.so.0");
  }

  public static StubControls of(Path library) {
    return new StubControls(library.toString());
  }

  /// Makes the `nth` call of `function` from now on fail with `code`, or every call if `nth` is 0.
  /// `stream read`, `stream write` and `batch entry` also count as functions: a submitted request
  /// then has `code` as its result, and a batch's entry has `detail` as its status.
  ///
  /// @param detail for libcufile: the `cu_err` of a status, or the `errno` of a read or write
  public void fail(String function, long nth, long code, long detail) {
    try (Arena arena = Arena.ofConfined()) {
      handle(
              "gantry_stub_fail",
              FunctionDescriptor.ofVoid(ADDRESS, JAVA_LONG, JAVA_LONG, JAVA_LONG))
          .invoke(arena.allocateFrom(function), nth, code, detail);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  /// Removes all faults, and resets the counts of calls.
  public void clear() {
    try {
      handle("gantry_stub_clear", FunctionDescriptor.ofVoid()).invoke();
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  /// Limits each read and write of libcufile to `bytes` bytes from now on; a negative number
  /// removes the limit.
  public void limit(long bytes) {
    set("gantry_stub_limit", bytes);
  }

  /// Sets the version that libcufile reports, as 1000 × major + 10 × minor; 0 for its own version.
  public void version(int number) {
    set("gantry_stub_version", number);
  }

  /// Sets whether sessions that open libcufile's driver from now on find direct I/O.
  public void direct(boolean there) {
    set("gantry_stub_p2p", there);
  }

  /// Sets the `fflags` of libcufile's driver properties; a negative number restores the fitting
  /// ones.
  public void features(long bits) {
    set("gantry_stub_features", bits);
  }

  /// Sets whether direct I/O, if the driver has it, can read and write files.
  public void serves(boolean files) {
    set("gantry_stub_serves", files);
  }

  /// Sets whether devices may access one another's memory; at first none may.
  public void peers(boolean allowed) {
    set("gantry_stub_peers", allowed);
  }

  private void set(String function, boolean on) {
    set(function, on ? 1 : 0);
  }

  private void set(String function, long value) {
    try {
      handle(function, FunctionDescriptor.ofVoid(JAVA_LONG)).invoke(value);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  /// Returns the value of a key in the `cufile.json` of libcufile's open driver. The key is given
  /// without its section. Returns a number, 0 or 1 for a boolean, or -1 if the key has no value.
  public long config(String key) {
    return ask("gantry_stub_config", key);
  }

  /// Returns the number of calls of `function` since the start or the last [#clear].
  public long calls(String function) {
    return ask("gantry_stub_calls", function);
  }

  /// Returns the functions that were called since the start or the last [#clear].
  public List<String> called() {
    List<String> names = new ArrayList<>();
    try {
      MethodHandle function =
          handle("gantry_stub_function", FunctionDescriptor.of(ADDRESS, JAVA_LONG));
      for (MemorySegment name = (MemorySegment) function.invoke(0L);
          !name.equals(MemorySegment.NULL);
          name = (MemorySegment) function.invoke((long) names.size())) {
        names.add(name.reinterpret(Long.MAX_VALUE).getString(0));
      }
      return names;
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  /// Returns one of the stub's figures. For libcuda: `contexts`, `modules`, `device bytes`, `peak
  /// device bytes`, `pinned bytes`, `registered bytes`, `streams`, `events`, `pending operations`,
  /// `pageable copies`, `to device bytes`, `to host bytes`, `peer bytes`, `peer bytes by host`
  /// (without peer access), `mapped by others` (shared memory that another GPU has), `freed while
  /// pending`, `freed while registered`. For libcufile: `opened`, `handles`, `buffers`,
  /// `registered bytes`, `bytes read`, `bytes written`, `unaligned`, `wrong base`, `disorder`,
  /// `posix` (I/O through the CPU), `streams`, `batches`, `entries` and `most entries` (of all
  /// batches, in flight at once), `late threads` (threads that had read or written, and had not
  /// ended when the driver was closed).
  public long count(String what) {
    long count = ask("gantry_stub_count", what);
    if (count < 0) {
      throw new IllegalArgumentException("the stub has no figure '" + what + "'");
    }
    return count;
  }

  private long ask(String function, String what) {
    try (Arena arena = Arena.ofConfined()) {
      return (long)
          handle(function, FunctionDescriptor.of(JAVA_LONG, ADDRESS))
              .invoke(arena.allocateFrom(what));
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  private MethodHandle handle(String symbol, FunctionDescriptor prototype) {
    return Linker.nativeLinker().downcallHandle(library.findOrThrow(symbol), prototype);
  }
}
