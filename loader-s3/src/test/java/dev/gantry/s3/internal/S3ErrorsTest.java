// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.store.RemoteFault;
import dev.gantry.core.internal.store.RetryLimits;
import java.lang.reflect.Constructor;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import software.amazon.awssdk.crt.s3.S3FinishedResponseContext;

/// Tests which ends of a request are faults after which another attempt may succeed.
class S3ErrorsTest {
  private static final int INVALID_ARGUMENT = 34;

  /// The CRT does not count these as passing itself.
  @ParameterizedTest
  @CsvSource({
    "1058, AWS_IO_DNS_QUERY_FAILED",
    "2073, AWS_ERROR_HTTP_CHANNEL_THROUGHPUT_FAILURE",
    "2092, AWS_ERROR_HTTP_RESPONSE_FIRST_BYTE_TIMEOUT"
  })
  void aLostConnectionIsAFaultThatPasses(int code, String name) throws Exception {
    RemoteFault fault = S3Errors.fault(end(code, 0, ""));
    assertThat(fault.reason()).contains(name);
    assertThat(RetryLimits.DEFAULT.pauseAfter(1, fault)).isPresent();
  }

  @ParameterizedTest
  @CsvSource({
    "409, OperationAborted, true",
    "400, RequestTimeout, true",
    "409, BucketNotEmpty, false",
    "400, InvalidRequest, false"
  })
  void theCodeTellsWhetherARefusalPasses(int status, String code, boolean passes) throws Exception {
    RemoteFault fault = S3Errors.fault(end(INVALID_ARGUMENT, status, code));
    assertThat(fault.status()).isEqualTo(status);
    assertThat(RetryLimits.DEFAULT.pauseAfter(1, fault).isPresent()).isEqualTo(passes);
  }

  /// Makes the end of a request, which only the CRT's client makes else.
  private static S3FinishedResponseContext end(int error, int status, String code)
      throws ReflectiveOperationException {
    Constructor<?> constructor = S3FinishedResponseContext.class.getDeclaredConstructors()[0];
    constructor.setAccessible(true);
    byte[] payload = ("<Error><Code>" + code + "</Code></Error>").getBytes(StandardCharsets.UTF_8);
    return (S3FinishedResponseContext)
        constructor.newInstance(error, status, payload, "GetObject", null, false, null, null);
  }
}
