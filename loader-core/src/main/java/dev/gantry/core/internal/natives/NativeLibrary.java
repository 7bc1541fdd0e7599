// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import java.io.IOException;
import java.lang.foreign.AddressLayout;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// A shared library that stays loaded until the process ends; its symbols are looked up one by one.
final class NativeLibrary {
  private static final Linker LINKER = Linker.nativeLinker();
  private static final int RTLD_LAZY = 1;

  /// The end of glibc's message if no file has the name.
  private static final String MISSING =
      ": cannot open shared object file: No such file or directory";

  private final String name;
  private final SymbolLookup symbols;

  private NativeLibrary(String name, SymbolLookup symbols) {
    this.name = name;
    this.symbols = symbols;
  }

  /// Loads the library that a setting names; empty where the setting names none.
  ///
  /// @param setting the name of a system property or an environment variable
  /// @param library the setting's value
  static Optional<Availability<NativeLibrary>> named(String setting, @Nullable String library) {
    if (library == null || library.isBlank()) {
      return Optional.empty();
    }
    return Optional.of(
        switch (load(List.of(library))) {
          case Availability.Absent<NativeLibrary>(String reason) ->
              Availability.absent(setting + " names " + reason);
          case Availability.Present<NativeLibrary> loaded -> loaded;
        });
  }

  /// Loads the first of `candidates` that can be loaded.
  ///
  /// @param candidates file names for the dynamic loader's own search, or absolute paths
  static Availability<NativeLibrary> load(List<String> candidates) {
    List<String> refusals = new ArrayList<>();
    for (String candidate : candidates) {
      String refusal = ElfFile.objection(candidate);
      if (refusal.isEmpty()) {
        try {
          return Availability.present(
              new NativeLibrary(candidate, SymbolLookup.libraryLookup(candidate, Arena.global())));
        } catch (IllegalArgumentException _) {
          refusal = refusal(candidate);
        }
      }
      refusals.add(refusal);
    }
    String all = String.join("; ", refusals);
    boolean missing = refusals.stream().allMatch(refusal -> refusal.endsWith(MISSING));
    return Availability.absent(
        missing && refusals.size() > 1 ? "not found: " + all.replace(MISSING, "") : all);
  }

  /// The paths of `file` in the folders where the CUDA toolkit installs its libraries.
  static List<String> toolkitPaths(String file) {
    List<String> paths = new ArrayList<>();
    paths.add("/usr/local/cuda/lib64/" + file);
    Path targets = Path.of("/usr/local/cuda/targets");
    if (Files.isDirectory(targets)) {
      try (DirectoryStream<Path> platforms = Files.newDirectoryStream(targets)) {
        for (Path platform : platforms) {
          paths.add(platform.resolve("lib").resolve(file).toString());
        }
      } catch (IOException _) {
        // Nothing can be loaded from a folder that cannot be listed.
        return List.copyOf(paths);
      }
    }
    return List.copyOf(paths);
  }

  /// The name or path under which the library was loaded.
  String name() {
    return name;
  }

  boolean has(String symbol) {
    return symbols.find(symbol).isPresent();
  }

  /// Returns the handle of `symbol`. The handle is never marked critical, since these calls block.
  Availability<MethodHandle> function(
      String symbol, FunctionDescriptor prototype, Linker.Option... options) {
    return symbols
        .find(symbol)
        .map(address -> Availability.present(LINKER.downcallHandle(address, prototype, options)))
        .orElseGet(() -> Availability.absent(name + " has no " + symbol));
  }

  /// Converts an exception of a downcall to an unchecked one: downcalls throw no checked ones, but declare them.
  static RuntimeException unchecked(Throwable thrown) {
    return switch (thrown) {
      case RuntimeException unchecked -> unchecked;
      case Error error -> throw error;
      case Throwable other -> throw new AssertionError("a downcall threw it", other);
    };
  }

  /// Asks the dynamic loader why it refuses `candidate`, since the foreign function API does not tell.
  private static String refusal(String candidate) {
    AddressLayout text =
        ValueLayout.ADDRESS.withTargetLayout(
            MemoryLayout.sequenceLayout(Long.MAX_VALUE, ValueLayout.JAVA_BYTE));
    SymbolLookup process = LINKER.defaultLookup();
    // void *dlopen(const char *filename, int flags)
    MethodHandle open =
        LINKER.downcallHandle(
            process.findOrThrow("dlopen"),
            FunctionDescriptor.of(ValueLayout.ADDRESS, ValueLayout.ADDRESS, ValueLayout.JAVA_INT));
    // char *dlerror(void)
    MethodHandle error =
        LINKER.downcallHandle(process.findOrThrow("dlerror"), FunctionDescriptor.of(text));
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment loaded = (MemorySegment) open.invoke(arena.allocateFrom(candidate), RTLD_LAZY);
      MemorySegment message = (MemorySegment) error.invoke();
      if (loaded.address() != 0 || message.address() == 0) {
        return candidate + " could not be loaded";
      }
      // The message may name another library, on which the candidate depends.
      String said = message.getString(0);
      return said.startsWith(candidate) ? said : candidate + ": " + said;
    } catch (Throwable thrown) {
      throw unchecked(thrown);
    }
  }
}
