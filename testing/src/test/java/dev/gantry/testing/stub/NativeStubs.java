// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing.stub;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/// The stub libraries, which the machine's C compiler compiles once in each JVM.
public final class NativeStubs {
  private static final List<String> CUDA =
      List.of(
          "stub_faults.c",
          "stub_cuda_driver.c",
          "stub_cuda_memory.c",
          "stub_cuda_kinds.c",
          "stub_cuda_streams.c",
          "stub_cuda_copies.c",
          "stub_cuda_kernels.c",
          "stub_cuda_ptx.c");
  private static final List<String> CUFILE =
      List.of("stub_faults.c", "stub_cufile.c", "stub_cufile_config.c", "stub_cufile_newer.c");
  private static final List<String> NVJPEG = List.of("stub_nvjpeg.c");
  private static final List<String> HEADERS =
      List.of(
          "stub_faults.h",
          "stub_cuda.h",
          "stub_cuda_ptx.h",
          "stub_cuda_streams.h",
          "stub_cufile.h");

  private static final List<String> FAULTY_LIBC =
      List.of("faulty_libc.c", "faulty_draw.c", "faulty_disk.c");

  /// The versions of the stubs of libcufile besides [#folder]'s, which is 1.15, as 1000 × major +
  /// 10 × minor.
  private static final int OLD = 1000;

  private static final int NEW = 1190;

  /// Whether the stubs are compiled with AddressSanitizer, which must then be preloaded: see
  /// [#sanitizer].
  private static final boolean SANITIZED = Boolean.getBoolean("gantry.stubs.sanitize");

  private NativeStubs() {}

  private static final class Built {
    static final Path FOLDER = build();
  }

  private static final class BuiltLibc {
    static final Path LIBRARY = buildLibc();
  }

  /// Returns a folder with `libcuda.so.1`, `libcufile.so.0` and `libnvjpeg.so.12`; skips the test
  /// if there is no C compiler.
  public static Path folder() {
    assumeTrue(hasCompiler(), "no C compiler (cc) to build the stub libraries with");
    return Built.FOLDER;
  }

  /// Returns the path of the stub of libcufile.
  public static Path cuFile() {
    return folder().resolve("libcufile.so.0");
  }

  /// Returns the path of a stub like the libcufile before CUDA 12.3: without version, parameters
  /// and statistics.
  public static Path oldCuFile() {
    return cuFile(OLD);
  }

  /// Returns the path of a stub like the newest libcufile whose header was read: 1.19, of CUDA
  /// 13.4.
  public static Path newCuFile() {
    return cuFile(NEW);
  }

  private static Path cuFile(int version) {
    return folder().resolve(version + "/libcufile.so.0");
  }

  /// Returns the library that [FaultyLibc] preloads; skips the test if there is no C compiler.
  static Path faultyLibc() {
    assumeTrue(hasCompiler(), "no C compiler (cc) to build the C library that fails with");
    return BuiltLibc.LIBRARY;
  }

  /// Returns the environment variables for AddressSanitizer, if `-Dgantry.stubs.sanitize=true` had
  /// the stubs compiled with it. The JVM must keep its own signal handlers, and its memory at the
  /// end is no leak.
  static Map<String, String> sanitizer() throws IOException {
    if (!SANITIZED) {
      return Map.of();
    }
    Process asked = new ProcessBuilder("cc", "-print-file-name=libasan.so").start();
    String library = new String(asked.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    return Map.of(
        "LD_PRELOAD",
        library.strip(),
        "ASAN_OPTIONS",
        "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:allow_user_segv_handler=1:detect_leaks=0");
  }

  private static boolean hasCompiler() {
    String path = Objects.requireNonNullElse(System.getenv("PATH"), "");
    for (String folder : path.split(":", -1)) {
      if (Files.isExecutable(Path.of(folder, "cc"))) {
        return true;
      }
    }
    return false;
  }

  private static Path build() {
    try {
      Path folder = Files.createTempDirectory("gantry-stubs-");
      List<Path> written = new ArrayList<>(List.of(folder));
      for (List<String> sources : List.of(CUDA, CUFILE, NVJPEG, HEADERS)) {
        copy(sources, folder, written);
      }
      written.add(compile(folder, CUDA, "libcuda.so.1", "GANTRY_STUB_CUDA_FAIL"));
      written.add(compile(folder, CUFILE, "libcufile.so.0", "GANTRY_STUB_CUFILE_FAIL"));
      written.add(compile(folder, NVJPEG, "libnvjpeg.so.12", ""));
      for (int version : List.of(OLD, NEW)) {
        written.add(Files.createDirectory(folder.resolve(Integer.toString(version))));
        written.add(
            compile(
                folder,
                CUFILE,
                version + "/libcufile.so.0",
                "GANTRY_STUB_CUFILE_FAIL",
                "-DSTUB_VERSION=" + version));
      }
      return deletedAtExit(written);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static Path buildLibc() {
    try {
      Path folder = Files.createTempDirectory("gantry-libc-");
      List<Path> written = new ArrayList<>(List.of(folder));
      copy(FAULTY_LIBC, folder, written);
      copy(List.of("faulty_libc.h"), folder, written);
      Path library = compile(folder, FAULTY_LIBC, "libfaulty.so", "");
      written.add(library);
      Path _ = deletedAtExit(written);
      return library;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Marks files for deletion at the exit of the JVM. The JVM deletes them in reverse order, so
  /// that folders are empty by then.
  ///
  /// @return the first of the paths
  private static Path deletedAtExit(List<Path> written) {
    written.forEach(file -> file.toFile().deleteOnExit());
    return written.getFirst();
  }

  private static void copy(List<String> sources, Path folder, List<Path> written)
      throws IOException {
    for (String source : sources) {
      Path file = folder.resolve(source);
      if (!Files.exists(file)) {
        copy(source, file);
        written.add(file);
      }
    }
  }

  private static void copy(String source, Path file) throws IOException {
    try (InputStream in =
        Objects.requireNonNull(
            NativeStubs.class.getResourceAsStream("/native-stubs/" + source), source)) {
      Files.copy(in, file);
    }
  }

  private static Path compile(
      Path folder, List<String> sources, String library, String faults, String... options)
      throws IOException {
    Path output = folder.resolve(library);
    List<String> command = new ArrayList<>();
    command.addAll(List.of("cc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"));
    command.addAll(List.of("-fvisibility=hidden", "-pthread", "-Wl,-Bsymbolic"));
    command.add("-Wl,-soname," + output.getFileName());
    command.add("-DSTUB_FAULTS_VARIABLE=\"" + faults + "\"");
    if (SANITIZED) {
      command.addAll(List.of("-g", "-fsanitize=address", "-fno-omit-frame-pointer"));
    }
    command.addAll(List.of(options));
    command.addAll(List.of("-o", output.toString()));
    sources.forEach(source -> command.add(folder.resolve(source).toString()));
    command.add("-ldl");
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    try {
      if (process.waitFor() != 0) {
        throw new IllegalStateException(String.join(" ", command) + "\n" + said);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while compiling " + library, e);
    }
    return output;
  }
}
