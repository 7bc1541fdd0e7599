// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

/// A device that tensors are on.
public sealed interface Device {
  /// The host; its memory is the CPU's.
  Device HOST = new Host();

  /// The host; see [#HOST].
  record Host() implements Device {
    @Override
    public String toString() {
      return "host";
    }
  }

  /// The CUDA device with this ordinal.
  record Cuda(int ordinal) implements Device {
    public Cuda {
      if (ordinal < 0) {
        throw new MisuseException(
            "the number of a CUDA device must be 0 or more (was " + ordinal + ")");
      }
    }

    @Override
    public String toString() {
      return "cuda:" + ordinal;
    }
  }

  /// Parses `host`, `cuda` (the first device) or `cuda:N`.
  ///
  /// @throws MisuseException if `name` is anything else
  static Device parse(String name) {
    MisuseException.requireGiven("name", name);
    if (name.equals("host")) {
      return HOST;
    }
    if (name.equals("cuda")) {
      return new Cuda(0);
    }
    if (name.startsWith("cuda:") && name.substring(5).matches("[0-9]{1,4}")) {
      return new Cuda(Integer.parseInt(name.substring(5)));
    }
    throw new MisuseException("no such device: '" + name + "'; give host, cuda or cuda:N");
  }
}
