// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

/// A device or native library that was asked for and is not there, with the reason.
public final class DeviceUnavailableException extends GantryException {
  private static final long serialVersionUID = 1L;

  /// @param message names the device or library, and says why it cannot serve
  public DeviceUnavailableException(String message) {
    super(message);
  }
}
