// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.diagnosis;

import ai.djl.util.Platform;
import ai.djl.util.Utils;
import dev.gantry.djl.internal.torch.TorchLibrary;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.Stream;

/// Finds which libtorch DJL's PyTorch engine would load in this process, without loading it. DJL
/// takes the libtorch of a named folder, else the one on the class path, else one that it
/// downloads (source: DJL 0.35.1, `LibUtils`).
///
/// @param flavor `cpu`, or `cu` with CUDA's version; `cuda` for a folder, which does not tell the
///     version; empty if there is no libtorch
/// @param source where the libtorch comes from, or why there is none
public record LibtorchChoice(String flavor, String source) {
  private static final String ENGINE = "pytorch";

  public static LibtorchChoice find() {
    return find(
        Optional.ofNullable(System.getenv("PYTORCH_LIBRARY_PATH")),
        System.getProperty("java.library.path", ""));
  }

  /// @param libraryPath the value of `PYTORCH_LIBRARY_PATH`
  /// @param systemPath the value of `java.library.path`
  static LibtorchChoice find(Optional<String> libraryPath, String systemPath) {
    Optional<LibtorchChoice> named =
        libraryPath.flatMap(path -> inFolders(path, "PYTORCH_LIBRARY_PATH"));
    return named
        .or(() -> inFolders(systemPath, "java.library.path"))
        .orElseGet(LibtorchChoice::byPlatform);
  }

  public boolean isForCuda() {
    return flavor.startsWith("cu");
  }

  /// Describes the choice in one line, for people.
  public String describe() {
    return flavor.isEmpty() ? source : flavor + " " + source;
  }

  private static Optional<LibtorchChoice> inFolders(String path, String variable) {
    String library = System.mapLibraryName("torch");
    return Stream.of(path.split(File.pathSeparator, -1))
        .map(Path::of)
        .map(named ->
            Files.isRegularFile(named) && named.endsWith(library)
                ? Objects.requireNonNull(named.toAbsolutePath().getParent())
                : named)
        .filter(folder -> Files.isRegularFile(folder.resolve(library)))
        .findFirst()
        .map(folder ->
            new LibtorchChoice(
                TorchLibrary.isForCuda(folder) ? "cuda" : "cpu",
                "in " + folder + ", which " + variable + " names"));
  }

  private static LibtorchChoice byPlatform() {
    Platform platform = Platform.detectPlatform(ENGINE);
    String asked = Objects.requireNonNullElse(Utils.getEnvOrSystemProperty("PYTORCH_VERSION"), "");
    if (!platform.getVersion().startsWith(asked)) {
      return downloaded(Platform.detectPlatform(ENGINE, asked));
    }
    return platform.isPlaceholder()
        ? downloaded(platform)
        : new LibtorchChoice(platform.getFlavor(), platform.getVersion() + ", from the class path");
  }

  private static LibtorchChoice downloaded(Platform platform) {
    String flavor = platform.getFlavor();
    String name =
        String.join("-", List.of(platform.getVersion(), flavor, platform.getClassifier()));
    Path folder = Utils.getEngineCacheDir(ENGINE).resolve(name);
    if (Files.exists(folder.resolve(System.mapLibraryName("torch")))) {
      return new LibtorchChoice(flavor, "in " + folder + ", where DJL downloaded it");
    }
    return Utils.isOfflineMode()
        ? new LibtorchChoice(
            "", "none: none is on the class path, and ai.djl.offline forbids to download one")
        : new LibtorchChoice(
            flavor,
            platform.getVersion()
                + ", which DJL downloads at first use (one for the CPU where it has none for this"
                + " CUDA)");
  }
}
