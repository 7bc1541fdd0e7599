// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import java.util.ArrayList;
import java.util.List;

/// Finds and loads libcufile.
public final class CuFileLibrary {
  /// A system property that names the library to use; no other is tried then.
  public static final String PROPERTY = "gantry.cufile.library";

  /// The environment variable of the same meaning; the system property wins.
  public static final String VARIABLE = "GANTRY_CUFILE_LIBRARY";

  private static final String SONAME = "libcufile.so.0";

  /// All functions of libcufile 1.0: a library that lacks one of them is not libcufile.
  private static final List<String> REQUIRED =
      List.of(
          "cuFileDriverOpen",
          "cuFileDriverClose",
          "cuFileDriverGetProperties",
          "cuFileDriverSetPollMode",
          "cuFileDriverSetMaxDirectIOSize",
          "cuFileDriverSetMaxCacheSize",
          "cuFileDriverSetMaxPinnedMemSize",
          "cuFileHandleRegister",
          "cuFileHandleDeregister",
          "cuFileBufRegister",
          "cuFileBufDeregister",
          "cuFileRead",
          "cuFileWrite");

  private CuFileLibrary() {}

  /// The library that the property or the variable names; else the first that the dynamic loader's
  /// own search or the CUDA toolkit's folders have. Opens no driver.
  public static Availability<CuFile> find() {
    String named = System.getProperty(PROPERTY, System.getenv(VARIABLE));
    if (named != null) {
      return load(named);
    }
    List<String> candidates = new ArrayList<>();
    candidates.add(SONAME);
    candidates.addAll(NativeLibrary.toolkitPaths(SONAME));
    return load(candidates);
  }

  /// Loads this library and tries no other.
  ///
  /// @param library a name for the dynamic loader's search, or an absolute path
  public static Availability<CuFile> load(String library) {
    return load(List.of(library));
  }

  private static Availability<CuFile> load(List<String> candidates) {
    return NativeLibrary.load(candidates).then(CuFileLibrary::bind);
  }

  private static Availability<CuFile> bind(NativeLibrary library) {
    for (String symbol : REQUIRED) {
      if (!library.has(symbol)) {
        return Availability.absent(library.name() + " has no " + symbol);
      }
    }
    return Availability.present(new CuFile(library));
  }
}
