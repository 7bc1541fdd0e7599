// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import java.io.Serializable;

/// Why an operation failed. Each layer has a record of its own, since layers give different
/// meanings to the same code.
public sealed interface Failure extends Serializable {
  /// The failure in words, with its code and name.
  String describe();

  /// The kernel refused.
  ///
  /// @param code the value of `errno`
  /// @param name the code's name, such as `EIO`
  /// @param meaning the code's meaning in words, such as `Input/output error`
  record Errno(int code, String name, String meaning) implements Failure {
    @Override
    public String describe() {
      return "errno " + code + " " + name + ": " + meaning;
    }
  }

  /// cuFile refused.
  ///
  /// @param code a `CUfileOpError` (5001 and up)
  /// @param name the code's name, such as `CU_FILE_DRIVER_NOT_INITIALIZED`, or `unknown`
  record CuFile(int code, String name, String meaning) implements Failure {
    @Override
    public String describe() {
      return "cuFile " + code + " " + name + ": " + meaning;
    }
  }

  /// The CUDA driver refused, directly or through cuFile.
  ///
  /// @param code a `CUresult`
  /// @param name the code's name, such as `CUDA_ERROR_OUT_OF_MEMORY`
  record Cuda(int code, String name, String meaning) implements Failure {
    @Override
    public String describe() {
      return "CUDA " + code + " " + name + ": " + meaning;
    }
  }

  /// libtorch refused. It prints its reason to standard error instead of returning it.
  ///
  /// @param code the value that libtorch's C entry point returned
  record Torch(int code) implements Failure {
    @Override
    public String describe() {
      return "libtorch " + code + ": refused, with its reason on standard error";
    }
  }

  /// The file ended before all bytes were read.
  ///
  /// @param missing the number of bytes that were not read
  record EndOfFile(long missing) implements Failure {
    @Override
    public String describe() {
      return "unexpected end of file, " + missing + " bytes missing";
    }
  }

  /// A write returned 0 bytes, and no error.
  ///
  /// @param missing the number of bytes that were not written
  record NothingWritten(long missing) implements Failure {
    @Override
    public String describe() {
      return "nothing was written, " + missing + " bytes missing";
    }
  }

  /// The store of a remote file refused, or its answer was wrong.
  ///
  /// @param status the answer's status, such as HTTP's 404; stores of other protocols give 404,
  ///     too, for a missing file; 0 if the status does not show the failure
  record Remote(int status, String reason) implements Failure {
    @Override
    public String describe() {
      return status == 0 ? reason : "status " + status + ": " + reason;
    }
  }

  /// The bytes are wrong: they differ from their checksum, or the file changed while it was read.
  ///
  /// @param kind as in [MalformedFileException#kind]
  record Malformed(String kind, String detail) implements Failure {
    @Override
    public String describe() {
      return kind + ": " + detail;
    }
  }

  /// The caller cancelled the operation.
  record Cancelled() implements Failure {
    @Override
    public String describe() {
      return "cancelled";
    }
  }
}
