// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.store.RemoteFault;
import dev.gantry.core.internal.store.RetryLimits;
import java.lang.reflect.Constructor;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import software.amazon.awssdk.awscore.exception.AwsErrorDetails;
import software.amazon.awssdk.crt.http.HttpHeader;
import software.amazon.awssdk.crt.s3.S3FinishedResponseContext;
import software.amazon.awssdk.http.SdkHttpResponse;
import software.amazon.awssdk.services.s3.model.S3Exception;

/// Tests which ends of a request are faults after which another attempt may succeed, and what is said of
/// refusals.
class S3ErrorsTest {
  private static final int INVALID_ARGUMENT = 34;

  /// The CRT does not count these as passing itself.
  @ParameterizedTest
  @CsvSource({
    "1058, AWS_IO_DNS_QUERY_FAILED",
    "2073, AWS_ERROR_HTTP_CHANNEL_THROUGHPUT_FAILURE",
    "2092, AWS_ERROR_HTTP_RESPONSE_FIRST_BYTE_TIMEOUT",
    "14360, AWS_ERROR_S3_REQUEST_TIME_TOO_SKEWED",
    "14369, AWS_ERROR_S3_REQUEST_TIMEOUT"
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

  /// After its last retry, the CRT withholds the status and the headers of the answer.
  @ParameterizedTest
  @CsvSource({"14341, 500, PT0S", "14342, 503, PT1S"})
  void whatTheCrtGaveUpIsAFaultThatPasses(int code, int status, Duration least) throws Exception {
    RemoteFault fault = S3Errors.fault(end(code, 0, ""));
    assertThat(fault.status()).isEqualTo(status);
    assertThat(RetryLimits.DEFAULT.pauseAfter(1, fault))
        .hasValueSatisfying(pause -> assertThat(pause).isGreaterThanOrEqualTo(least));
  }

  /// Servers and proxies write the header's name in any case.
  @ParameterizedTest
  @ValueSource(strings = {"Retry-After", "retry-after"})
  void theServerSaysHowLongToWait(String header) throws Exception {
    RemoteFault fault =
        S3Errors.fault(end(INVALID_ARGUMENT, 503, "SlowDown", new HttpHeader(header, "7")));
    assertThat(RetryLimits.DEFAULT.pauseAfter(1, fault)).contains(Duration.ofSeconds(7));
  }

  /// A user can mend these only if the error says what is wrong.
  @ParameterizedTest
  @CsvSource({
    "400, ExpiredToken, the credentials have expired",
    "400, TokenRefreshRequired, the credentials have expired",
    "403, InvalidAccessKeyId, does not accept the credentials",
    "403, SignatureDoesNotMatch, does not accept the credentials",
    "400, InvalidToken, does not accept the credentials",
    "301, PermanentRedirect, set AWS_REGION",
    "400, AuthorizationHeaderMalformed, set AWS_REGION",
    "400, IllegalLocationConstraintException, set AWS_REGION"
  })
  void aRefusalSaysWhatIsWrong(int status, String code, String words) throws Exception {
    assertThat(S3Errors.fault(end(INVALID_ARGUMENT, status, code)).reason()).contains(words);
  }

  @ParameterizedTest
  @CsvSource({"301, true", "307, true", "400, true", "403, false"})
  void aBucketOfAnotherRegionIsNamedWithIt(int status, boolean named) {
    AwsErrorDetails details =
        AwsErrorDetails.builder()
            .sdkHttpResponse(
                SdkHttpResponse.builder()
                    .statusCode(status)
                    .putHeader("x-amz-bucket-region", "eu-west-1")
                    .build())
            .build();
    Throwable refused = S3Exception.builder().statusCode(status).awsErrorDetails(details).build();
    String message = String.valueOf(S3Errors.of("list", "s3://bucket/", refused).getMessage());
    assertThat(message.contains("AWS_REGION=eu-west-1")).isEqualTo(named);
  }

  /// Makes the end of a request, which only the CRT's client makes else.
  private static S3FinishedResponseContext end(
      int error, int status, String code, HttpHeader... headers)
      throws ReflectiveOperationException {
    Constructor<?> constructor = S3FinishedResponseContext.class.getDeclaredConstructors()[0];
    constructor.setAccessible(true);
    byte[] payload = ("<Error><Code>" + code + "</Code></Error>").getBytes(StandardCharsets.UTF_8);
    return (S3FinishedResponseContext)
        constructor.newInstance(error, status, payload, "GetObject", null, false, null, headers);
  }
}
