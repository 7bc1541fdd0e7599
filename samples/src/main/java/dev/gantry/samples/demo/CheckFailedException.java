// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.demo;

/// A check of the demo failed. The message is one line.
public final class CheckFailedException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  CheckFailedException(String message) {
    super(message);
  }
}
