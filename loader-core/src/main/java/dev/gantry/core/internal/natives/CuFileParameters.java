// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BOOLEAN;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import dev.gantry.core.DeviceUnavailableException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;

/// libcufile's switches as calls (1.14 on), which win over `CUFILE_ENV_PATH_JSON` and
/// `/etc/cufile.json`. They can be set only before the driver opens. Reading gives the value that is
/// staged before that, and the one in force after. Thread-safe.
public final class CuFileParameters {
  /// Those of `CUFileBoolConfigParameter_t` that decide whether the CPU copies.
  public enum Flag {
    PROPERTIES_ALLOW_COMPAT_MODE(1),
    FORCE_COMPAT_MODE(2);

    private final int value;

    Flag(int value) {
      this.value = value;
    }
  }

  private final NativeLibrary library;

  private CuFileParameters(NativeLibrary library) {
    this.library = library;
  }

  static Availability<CuFileParameters> bind(NativeLibrary library) {
    String first = "cuFileSetParameterBool";
    return library.has(first)
        ? Availability.present(new CuFileParameters(library))
        : Availability.absent(library.name() + " has no " + first);
  }

  // CUfileError_t cuFileSetParameterBool(CUFileBoolConfigParameter_t param, bool value)
  public void set(Flag parameter, boolean value) {
    function("cuFileSetParameterBool", JAVA_INT, JAVA_BOOLEAN)
        .call(parameter + " = " + value, parameter.value, value);
  }

  // CUfileError_t cuFileGetParameterBool(CUFileBoolConfigParameter_t param, bool *value)
  public boolean get(Flag parameter) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment value = arena.allocate(JAVA_BYTE);
      function("cuFileGetParameterBool", JAVA_INT, ADDRESS)
          .call(parameter.name(), parameter.value, value);
      return value.get(JAVA_BYTE, 0) != 0;
    }
  }

  private CuFileFunction function(String symbol, MemoryLayout... arguments) {
    return CuFileFunction.find(library, symbol, arguments)
        .orElseThrow(DeviceUnavailableException::new);
  }
}
