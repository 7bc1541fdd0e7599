// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing.stub;

import dev.gantry.testing.ChildJvm;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Collectors;

/// A JVM of its own in which `libcuda.so.1` and `libcufile.so.0` are the stubs, with this JVM's
/// class path.
///
/// Environment: `GANTRY_STUB_CUDA_DEVICES` (1), `GANTRY_STUB_CUDA_VISIBLE` (which of them the process sees, in which
/// order, as in `1,0`), `GANTRY_STUB_CUDA_TOTAL` (bytes of each device, 1
/// GiB), `GANTRY_STUB_CUDA_PEERS` (1: devices may reach one another's memory), `GANTRY_STUB_CUDA_FAIL` and
/// `GANTRY_STUB_CUFILE_FAIL` (`function:nth:code[:detail],...`), `GANTRY_STUB_CUFILE_LIMIT` (bytes of a read or
/// write), `GANTRY_STUB_CUFILE_VERSION` (the version that libcufile says it is), `GANTRY_STUB_CUFILE_DIRECT` (1: it
/// reaches disks past the CPU).
public final class StubbedJvm {
  private static final String LIBRARIES = "LD_LIBRARY_PATH";

  private StubbedJvm() {}

  /// Runs `main` to its end; the test is skipped where there is no C compiler.
  public static ChildJvm.Result run(
      Class<?> main, Map<String, String> environment, String... arguments) {
    Map<String, String> all = new HashMap<>(environment);
    all.putIfAbsent(LIBRARIES, NativeStubs.folder().toString());
    try {
      all.putAll(NativeStubs.sanitizer());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return ChildJvm.run("256m", all, main, arguments);
  }

  /// The environment in which `libcufile.so.0` is the newest stub.
  public static Map<String, String> newCuFile() {
    return Map.of(LIBRARIES, NativeStubs.newCuFile().getParent() + ":" + NativeStubs.folder());
  }

  /// Runs the tests that a GPU host runs.
  ///
  /// @param packages and tags, as [TaggedTests] takes them
  /// @throws AssertionError that begins with the tests that failed, unless all ran and none failed
  public static void runTests(Map<String, String> environment, String... packages) {
    String out = run(TaggedTests.class, environment, packages).requirePassed();
    if (!out.contains(TaggedTests.ALL_RAN)) {
      String skipped =
          out.lines()
              .filter(line -> line.contains("TestAbortedException"))
              .map(String::strip)
              .collect(Collectors.joining("; "));
      throw new AssertionError("tests were skipped: " + skipped + "\n" + out);
    }
  }
}
