// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

/// Says that a device or native library that the caller asked for is not available, and why.
public final class DeviceUnavailableException extends GantryException {
  private static final long serialVersionUID = 1L;

  /// @param message names the device or library, and says why it cannot be used
  public DeviceUnavailableException(String message) {
    super(message);
  }
}
