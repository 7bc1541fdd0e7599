// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing.stub;

import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.testing.ChildJvm;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Collectors;

/// A JVM of its own with this JVM's class path, in which `libcuda.so.1` and `libcufile.so.0` are
/// the stubs.
///
/// The stubs read these environment variables: `GANTRY_STUB_CUDA_DEVICES` (the number of devices,
/// 1 by default), `GANTRY_STUB_CUDA_VISIBLE` (the devices that the process sees, in order, as in
/// `1,0`), `GANTRY_STUB_CUDA_TOTAL` (the bytes of each device, 1 GiB by default),
/// `GANTRY_STUB_CUDA_PEERS` (1: devices may access one another's memory), `GANTRY_STUB_CUDA_FAIL`
/// and `GANTRY_STUB_CUFILE_FAIL` (`function:nth:code[:detail],...`), `GANTRY_STUB_CUFILE_LIMIT`
/// (the most bytes of a read or write), `GANTRY_STUB_CUFILE_VERSION` (the version that libcufile
/// reports), `GANTRY_STUB_CUFILE_DIRECT` (1: libcufile reads and writes disks past the CPU).
public final class StubbedJvm {
  private static final String LIBRARIES = "LD_LIBRARY_PATH";

  private StubbedJvm() {}

  /// Runs `main` to its end; skips the test if there is no C compiler.
  public static ChildJvm.Result run(
      Class<?> main, Map<String, String> environment, String... arguments) {
    Map<String, String> all = new HashMap<>(environment);
    all.putIfAbsent(LIBRARIES, NativeStubs.folder().toString());
    // A library that is named is asked even if this machine has no disk that it could serve.
    all.putIfAbsent(CuFile.VARIABLE, "libcufile.so.0");
    try {
      all.putAll(NativeStubs.sanitizer());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return ChildJvm.run("256m", all, main, arguments);
  }

  /// Returns the environment in which `libcufile.so.0` is the newest stub.
  public static Map<String, String> newCuFile() {
    return Map.of(LIBRARIES, NativeStubs.newCuFile().getParent() + ":" + NativeStubs.folder());
  }

  /// Runs the tests that a GPU host runs.
  ///
  /// @param packages the packages and tags, as [TaggedTests] takes them
  /// @throws AssertionError unless all tests ran and none failed; the message begins with the
  ///     failed tests
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
